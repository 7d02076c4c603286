import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TrainingSink } from 'manyworlds/train'

/** W&B has no client for TypeScript: its Python package, which must be installed for `python`, reads lines from us. */
export function wandb(project: string, { python = 'python3' } = {}): TrainingSink {
  const program = `
import json, sys, wandb
about = json.loads(sys.stdin.readline())
run = wandb.init(project=about["project"], id=about["id"], config=about["config"], resume="allow")
for line in sys.stdin:
    told = json.loads(line)
    run.log(told["values"], step=told["step"])
run.finish()`
  let child: ChildProcess
  const tell = (line: object) =>
    new Promise<void>((resolve, reject) => {
      child.stdin!.write(`${JSON.stringify(line)}\n`, (error) => (error ? reject(error) : resolve()))
    })
  return {
    name: 'wandb',
    async open({ trainingId, config = {} }) {
      child = spawn(python, ['-c', program], { stdio: ['pipe', 'ignore', 'inherit'] })
      await once(child, 'spawn')
      // A write says so too, if Python is gone; without this, Node would end the program.
      child.stdin!.on('error', () => {})
      await tell({ project, id: trainingId, config })
    },
    scalars: (step, values) => tell({ step, values }),
    async close() {
      child.stdin!.end()
      const [code] = child.exitCode === null ? await once(child, 'exit') : [child.exitCode]
      if (code !== 0) throw new Error(`wandb: Python ended with code ${code}`)
    },
  }
}
