// The work itself, the same module for every pool that takes a module. CommonJS and plain JavaScript, because that is
// what every one of these pools can load, and it loads fastest: no pool pays for type stripping in its cold start.
exports.noop = (input) => input.id
exports.echo = (input) => input
exports.sleep = (input) => new Promise((resolve) => setTimeout(resolve, 20, input.id))
