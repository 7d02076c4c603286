// A process that loads this first never ends by itself once it began to exit: HANG says where it stays.
if (process.env.HANG === 'listener')
  process.on('exit', () => {
    for (;;);
  })
// As in Node's own shutdown: nothing in this process runs any more.
if (process.env.HANG === 'shutdown')
  process.reallyExit = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
