/** Programs that travel bring their watchdog as a file beside them: this is that of `link-echo.ts`. */
import '../worker/watchdog.ts'
