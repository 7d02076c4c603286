const CONNECT_WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'host not found (ENOTFOUND)',
  EAI_AGAIN: 'host not found (EAI_AGAIN)',
}

/** Why a connection could not be made; undefined for codes that need no explanation of ours. */
export const connectWords = (code: string | undefined): string | undefined => CONNECT_WORDS[code ?? '']

/** Why a server could not listen. */
export const listenWords = ({ code, message }: NodeJS.ErrnoException): string =>
  code === 'EADDRINUSE' ? 'something else listens there (EADDRINUSE)' : message

/** The reason in a TLS error, without the file names, numbers and advice that OpenSSL and Node add. */
export const tlsWords = (message: string): string =>
  (/alert ([a-z ]{1,100}):/.exec(message)?.[1] ?? message.split('; if the root CA')[0]!).trim()
