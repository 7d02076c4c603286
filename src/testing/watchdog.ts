/** A program that is sent to other machines needs its watchdog as a file beside it: this is the one of `link-echo.ts`. */
import '../worker/watchdog.ts'
