/**
 * Importing this module makes the process ignore signals that ask it to stop. systemd, cluster managers and terminals send them
 * to all processes of a program: the driver or host gets them too, lets running tasks finish, and ends its workers. If it is
 * gone, the watchdog ends this process.
 */
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})

export {}
