/**
 * uPlot formats numbers by `navigator.language` when it is loaded. A browser whose locale is POSIX says `en-US@posix` there, which
 * is no language tag: the whole page would fail. Import this before uPlot.
 */
try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true })
}
