import { useState } from 'preact/hooks'
import { jsonIn } from '../../../src/text/json-in.ts'
import type { Talk } from '../../../src/text/talk.ts'
import type { ModelStep, Step, ToolStep } from '../../../src/trajectory/step.ts'
import { SafeText, visible } from '../parts/safe-text.tsx'
import { counted, duration } from '../text/quantities.ts'
import { CallView } from './call-view.tsx'
import { ContentView } from './content-view.tsx'
import { Bubble, MessageView, Reasoning } from './message-view.tsx'
import type { ShownStep } from './shown-step.ts'
import { StepFrame, usageFacts } from './step-frame.tsx'
import { TokensView } from './tokens-view.tsx'
import { ValueView } from './value-view.tsx'

const SPEAKERS = { agent: 'assistant', judge: 'judge', user: 'simulated user' } as const
/** Normal finish reasons, which are not shown. */
const USUAL_FINISH = new Set(['stop', 'tool_calls', 'tool-calls', 'end_turn', 'tool_use', ''])

interface Props {
  readonly shown: ShownStep
  readonly step: Step & ModelStep
  readonly talk: Talk
  readonly href: string
  readonly hrefOf: (index: number) => string
  readonly loadWhole: (index: number) => Promise<void>
}

/** A model call: the new messages of its request, and the reply. */
export function ModelStepView({ shown, step, talk, href, hrefOf, loadWhole }: Props) {
  const [isTokens, setTokens] = useState(false)
  const { messages, remark } = talk.newMessages(step)
  const tools = talk.newTools(step)
  const { reply, tokens } = step
  const calls = reply.calls ?? []
  const isEmpty = calls.length === 0 && !reply.reasoning && (reply.content === null || reply.content === '')
  const hasTokens = tokens !== null && tokens.completion.length > 0
  return (
    <StepFrame
      shown={shown}
      href={href}
      loadWhole={loadWhole}
      facts={<Facts step={step} />}
      buttons={
        hasTokens && (
          <button
            type="button"
            class="small-button quiet"
            aria-expanded={isTokens}
            onClick={() => setTokens(!isTokens)}
          >
            {counted(tokens.completion.length, 'token')}
          </button>
        )
      }
    >
      {remark !== '' && <p class="dim step-remark">{remark}</p>}
      {messages.map((message) => (
        <MessageView message={message} />
      ))}
      {tools !== undefined && <Tools tools={tools} />}
      <Bubble role={SPEAKERS[step.role]}>
        <Reasoning text={reply.reasoning} />
        {isEmpty ? <p class="dim">an empty reply</p> : <ContentView content={reply.content} />}
        <Calls step={step} talk={talk} hrefOf={hrefOf} />
      </Bubble>
      {isTokens && hasTokens && <TokensView tokens={tokens} texts={shown.tokenTexts} />}
    </StepFrame>
  )
}

/** Tool calls. Those with a step of their own are shown there with their results, and linked from here. */
function Calls({ step, talk, hrefOf }: Pick<Props, 'step' | 'talk' | 'hrefOf'>) {
  const calls = (step.reply.calls ?? []).map((call, position) => ({
    ...call,
    tool: talk.toolOf(step, position) as (Step & ToolStep) | undefined,
  }))
  const made = calls.flatMap(({ name, tool }) => (tool ? [{ name, tool }] : []))
  return (
    <>
      {calls.map(({ id, name, raw, tool }) => {
        const told = talk.toldOf(step, id)
        return tool ? null : <CallView name={name} raw={raw} {...(told && { end: { result: told.content } })} />
      })}
      {made.length > 0 && (
        <div class="call-chips">
          {made.map(({ name, tool }) => (
            <a class="call-chip" href={hrefOf(tool.index)}>
              <span aria-hidden="true">{tool.error === undefined ? '⚙' : '✗'} </span>
              <span class="hidden-text">{tool.error === undefined ? 'calls ' : 'calls, and fails: '}</span>
              <SafeText text={name} />
              <span class="dim"> step {tool.index}</span>
            </a>
          ))}
        </div>
      )}
    </>
  )
}

function Tools({ tools }: { readonly tools: string }) {
  const list = jsonIn(tools)
  const names = Array.isArray(list) ? list.map(nameOf).filter((name) => name !== '') : []
  return (
    <details class="folded">
      <summary>
        <span class="folded-title">{names.length === 0 ? 'Tools' : counted(names.length, 'tool')}</span>
        <span class="dim cut folded-peek mono">{visible(names.join(', ').slice(0, 300))}</span>
      </summary>
      <div class="folded-inside">
        <ValueView value={list ?? tools} />
      </div>
    </details>
  )
}

function nameOf(tool: unknown): string {
  const { name, function: inner } = (tool ?? {}) as { name?: unknown; function?: { name?: unknown } | null }
  const found = name ?? inner?.name
  return typeof found === 'string' ? found : ''
}

function Facts({ step }: { readonly step: Step & ModelStep }) {
  const { server, policy, usage, cached, ms, retries, finish, redacted, sampling } = step
  const usual = [
    server.model,
    policy ? `policy ${policy.name} v${policy.version}` : '',
    sampling.temperature === null ? '' : `temperature ${sampling.temperature}`,
    ...usageFacts(usage),
    cached ? 'from the cache' : duration(ms),
  ]
  const unusual = [
    retries > 0 ? (retries === 1 ? '1 retry' : `${retries} retries`) : '',
    USUAL_FINISH.has(finish) ? '' : `ended by ${finish}`,
    redacted ? 'secrets were removed' : '',
  ]
  return (
    <>
      {visible(usual.filter(Boolean).join(' · '))}
      {unusual.filter(Boolean).map((fact) => (
        <strong class="step-unusual"> {visible(fact)}</strong>
      ))}
    </>
  )
}
