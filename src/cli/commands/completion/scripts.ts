/**
 * The scripts call `manyworlds __complete -- WORD…` whenever the tab key is pressed, so they stay valid for new versions.
 * They call it by the typed name, which may be a path such as node_modules/.bin/manyworlds.
 */

/** Shell scripts contain `${`, which would start an expression in this template. They are written with `§{` instead. */
const script = (text: TemplateStringsArray) => text.raw.join('').replaceAll('§{', '${')

// Bash also splits words at = and :, so the script joins them again, and returns only the part after them. Without any
// reply, Bash completes files: that implements the answer `files`. For the answer `words`, compopt turns this off; Bash
// 3.2 of macOS has no compopt.
export const bash = script`# manyworlds: completion for bash
_manyworlds() {
  local line=$COMP_LINE word before words=() i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=§{COMP_WORDS[i]}
    before=§{line%%"$word"*}
    line=§{line#*"$word"}
    if [[ $i -gt 0 && -n $word && -z $before ]]; then
      words[§{#words[@]}-1]+=$word
    else
      words+=("$word")
    fi
  done
  local whole=§{words[§{#words[@]}-1]} current=§{COMP_WORDS[COMP_CWORD]} kind about
  [[ $current == [=:] ]] && current=
  local prefix=§{whole%"$current"}
  COMPREPLY=()
  {
    read -r kind
    [[ $kind == words ]] && compopt +o default 2>/dev/null
    while IFS=$'\t' read -r word about; do
      COMPREPLY+=("§{word#"$prefix"}")
    done
  } < <("§{words[0]}" __complete -- "§{words[@]:1}" 2>/dev/null)
}
complete -o default -F _manyworlds manyworlds
`

export const zsh = script`#compdef manyworlds
# manyworlds: completion for zsh
_manyworlds() {
  local -a lines described
  local line
  lines=("§{(@f)$("§{words[1]}" __complete -- "§{(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ $lines[1] == files ]]; then
    compset -P '--*='
    _files
    return
  fi
  for line in "§{(@)lines[2,-1]}"; do
    described+=("§{§{line%%$'\t'*}//:/\\:}:§{line#*$'\t'}")
  done
  _describe manyworlds described
}
if [[ $funcstack[1] == _manyworlds ]]; then
  _manyworlds "$@"
else
  compdef _manyworlds manyworlds
fi
`

export const fish = script`# manyworlds: completion for fish
function __manyworlds_complete
  set -l words (commandline --tokenize --current-process --cut-at-cursor)
  set -l current (commandline --current-token --cut-at-cursor)
  set -l answer ($words[1] __complete -- $words[2..] "$current" 2>/dev/null)
  if test "$answer[1]" = files
    set -l flag (string replace --regex --filter '^(--[^=]*=).*' '$1' -- "$current")
    for path in (__fish_complete_path (string replace --regex '^--[^=]*=' '' -- "$current"))
      printf '%s\n' "$flag$path"
    end
  else
    printf '%s\n' $answer[2..]
  end
end
complete --command manyworlds --no-files --arguments '(__manyworlds_complete)'
`
