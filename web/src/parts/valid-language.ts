/**
 * uPlot formats numbers by `navigator.language` when it is loaded. A browser with a POSIX locale returns `en-US@posix`,
 * which is not a valid language tag, and the whole page would fail. Import this before uPlot.
 */
try {
  new Intl.NumberFormat(navigator.language)
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US', configurable: true })
}
