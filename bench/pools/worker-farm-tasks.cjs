// worker-farm calls functions with a callback. Answering at once where the task does spares it a promise per task.
const { noop, echo, sleep } = require('./tasks.cjs')

exports.noop = (input, done) => done(null, noop(input))
exports.echo = (input, done) => done(null, echo(input))
exports.sleep = (input, done) => void sleep(input).then((answer) => done(null, answer), done)
