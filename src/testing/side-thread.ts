/** Programs that travel bring their side thread as a file beside them: this is that of `link-echo.ts`. */
import '../worker/side-thread.ts'
