require('workerpool').worker(require('./tasks.cjs'))
