/** Python packages that tests, benchmarks and checks use. `node scripts/python-locks.ts NAME` makes their lock files, in `locks/` here. */

export interface TestEnvironment {
  /** Of the folder and the lock file. */
  readonly name: string
  readonly packages: readonly string[]
  readonly python: string
}

const of = (name: string, version: string, python = '3.11', more: readonly string[] = []): TestEnvironment => ({
  name: `${name}-${version}`,
  packages: [`${name}==${version}`, ...more],
  python,
})

export const TENSORBOARD: TestEnvironment = of('tensorboard', '2.21.0')

/** With PyTorch: on Linux 2.8 GB to download, 5 GB on disk, about 90 s. */
export const TRL: TestEnvironment = of('trl', '1.16.0')

/** With its server. */
export const MLFLOW: TestEnvironment = of('mlflow', '3.17.2')
export const WANDB: TestEnvironment = of('wandb', '0.31.0')

/** Where ATIF comes from. It needs a newer Python than the others. */
export const HARBOR: TestEnvironment = of('harbor', '0.24.0', '3.12')

/** With the same PyTorch as TRL, of which uv keeps one copy. */
export const STABLE_BASELINES3: TestEnvironment = of('stable-baselines3', '2.9.2', '3.11', ['gymnasium==1.4.0'])

/** The SDK whose calls src/train/tinker makes. Without PyTorch: 350 MB, half a minute. */
export const TINKER: TestEnvironment = of('tinker', '0.36.0')

/** The linter of `npm run check`, for the Python in this repository. */
export const RUFF: TestEnvironment = of('ruff', '0.17.5')

export const TEST_ENVIRONMENTS: readonly TestEnvironment[] = [
  ...[TENSORBOARD, TRL, MLFLOW, WANDB, HARBOR, STABLE_BASELINES3, TINKER, RUFF],
]
