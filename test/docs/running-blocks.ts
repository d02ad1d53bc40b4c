import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { freePort } from '../support/free-port.js'
import type { PlacedBlocks } from './blocks.js'

/** A block of a document that serves. */
export interface RunningApp {
  readonly url: string
  /** What it has written to stderr. */
  complaints(): string
  /** Sends SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
}

/** Runs a block that comes to an end, as a process of its own; resolves with what it has printed. */
export async function runBlock(
  placed: PlacedBlocks,
  heading: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<string> {
  const options = { env: environmentOf(placed, environment) }
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', placed.fileOf(heading)],
    options,
  )
  return stdout
}

/** Starts a block that serves at `PORT`, as a process of its own. */
export async function startBlock(
  placed: PlacedBlocks,
  heading: string,
  environment: NodeJS.ProcessEnv,
): Promise<RunningApp> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const app = spawn(process.execPath, ['--import', 'tsx', placed.fileOf(heading)], {
    env: environmentOf(placed, { ...environment, PORT: String(port) }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  app.stdout?.resume()
  let complaints = ''
  app.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  await answering(url).catch((error: Error) => {
    throw new Error(`${error.message}\n${complaints}`)
  })
  return {
    url,
    complaints: () => complaints,
    async stop() {
      if (app.exitCode !== null) return app.exitCode
      app.kill()
      const [code] = await once(app, 'exit')
      return code
    },
  }
}

const environmentOf = (placed: PlacedBlocks, own: NodeJS.ProcessEnv): NodeJS.ProcessEnv => ({
  ...process.env,
  ...own,
  TSX_TSCONFIG_PATH: placed.tsconfig,
})

async function answering(url: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    const answered = await fetch(url).then(
      () => true,
      () => false,
    )
    if (answered) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`nothing answers at ${url}`)
}
