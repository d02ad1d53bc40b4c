import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { freePort } from '../support/network/free-port.js'
import { compile } from '../support/process/compile.js'
import type { PlacedBlocks } from './blocks.js'

/** A block of a document that serves. */
export interface RunningApp {
  readonly url: string
  /** What it has written to stdout. */
  printed(): string
  /** What it has written to stderr. */
  complaints(): string
  /** Sends a signal, by default SIGTERM; resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** Runs a block that comes to an end, as a process of its own; resolves with what it has printed. */
export async function runBlock(
  placed: PlacedBlocks,
  heading: string,
  environment: NodeJS.ProcessEnv = {},
  cwd = process.cwd(),
): Promise<string> {
  const program = await compile(pathToFileURL(placed.fileOf(heading)))
  const options = { cwd, env: { ...process.env, ...environment } }
  const { stdout } = await promisify(execFile)(process.execPath, [program], options)
  return stdout
}

/**
 * Starts a block that serves at `PORT`, as a process of its own.
 *
 * @param stdout the descriptor of a file for its output, if that has tokens on purpose.
 */
export async function startBlock(
  placed: PlacedBlocks,
  heading: string,
  environment: NodeJS.ProcessEnv,
  stdout?: number,
): Promise<RunningApp> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const app = spawn(process.execPath, [await compile(pathToFileURL(placed.fileOf(heading)))], {
    env: { ...process.env, ...environment, PORT: String(port) },
    stdio: ['ignore', stdout ?? 'pipe', 'pipe'],
  })
  let printed = ''
  app.stdout?.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  let complaints = ''
  app.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  await answering(url).catch((error: Error) => {
    throw new Error(`${error.message}\n${complaints}`)
  })
  return {
    url,
    printed: () => printed,
    complaints: () => complaints,
    async stop(signal = 'SIGTERM') {
      if (app.exitCode !== null) return app.exitCode
      app.kill(signal)
      const [code] = await once(app, 'exit')
      return code
    },
  }
}

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
