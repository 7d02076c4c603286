// Unpacks the browser among the temporary files.
import sparticuz from '@sparticuz/chromium'

await sparticuz.executablePath()
