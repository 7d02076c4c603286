import { spawn, spawnSync } from 'node:child_process'
import { defineAgent, Runners } from 'manyworlds'

/** Its task starts processes in sessions of their own. `how`: what ends the worker then. */
const how = process.argv[2]

const leave = defineAgent({
  name: 'leave',
  run: (dies: boolean, ctx) => {
    if (ctx.attempt > 1) return []
    const child = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' })
    child.unref()
    // Its parent ends at once, so it is a child of init.
    const { stdout } = spawnSync('sh', ['-c', 'setsid sleep 1000 >/dev/null 2>&1 & echo $!'], { encoding: 'utf8' })
    if (dies) process.kill(process.pid, 'SIGKILL')
    return [child.pid!, Number(stdout)]
  },
})

const { answer } = await Runners.runTask(leave.task(how === 'the worker dies'), { maxAttempts: 1 })
console.log(JSON.stringify(answer ?? null))
if (how === 'the driver is killed') process.kill(process.pid, 'SIGKILL')
if (how === 'the worker dies') {
  const { readdirSync, readFileSync } = await import('node:fs')
  const commands = () =>
    readdirSync('/proc').filter((pid) => {
      try {
        const mine = readFileSync(`/proc/${pid}/environ`, 'utf8').includes(process.env.MANYWORLDS_TEST_SCRIPT!)
        return mine && readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('sleep\0')
      } catch {
        return false
      }
    })
  // The run's other workers stay, and so does this process.
  const until = Date.now() + 20_000
  while (commands().length > 0 && Date.now() < until) await new Promise((done) => setTimeout(done, 50))
  console.log(JSON.stringify(commands()))
}
