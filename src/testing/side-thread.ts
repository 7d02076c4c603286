/** A program that is sent to other machines needs its side thread as a file beside it: this is the one of `link-echo.ts`. */
import '../worker/side-thread.ts'
