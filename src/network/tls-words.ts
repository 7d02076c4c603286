/** Without what OpenSSL and Node put around it for developers of OpenSSL and Node. */
export const plainly = (message: string): string =>
  (/alert ([a-z ]{1,100}):/.exec(message)?.[1] ?? message.split('; if the root CA')[0]!).trim()
