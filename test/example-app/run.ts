import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { compile } from '../support/process/compile.js'
import { recordOutput } from '../support/secret-search/index.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Of the services and of the page. */
export const FREE_PORTS = {
  CORE_PORT: '0',
  ORDERS_PORT: '0',
  BILLING_PORT: '0',
  ROOM_PORT: '0',
}

interface Finished {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  readonly finished: Promise<Finished>
  /** Resolves with all that was printed, once the text is part of it. */
  printed(text: string): Promise<string>
  /** What has come on standard error so far. */
  complained(): string
}

/** Starts a file of the example app as its users do, on free ports unless told otherwise. */
export async function run(
  file: string,
  args: string[] = [],
  env: Record<string, string> = {},
): Promise<Running> {
  const program = await compile(new URL(`../../example-app/${file}`, import.meta.url))
  const { REDIS_URL: _, DATABASE_URL: __, NODE_OPTIONS: ___, ...inherited } = process.env
  const child = spawn(process.execPath, [program, ...args], {
    cwd: ROOT,
    env: { ...inherited, ...FREE_PORTS, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const finished = once(child, 'close').then(([code]) => {
    recordOutput(file, [stdout, stderr])
    return { code, stdout, stderr }
  })

  async function printed(text: string): Promise<string> {
    while (!stdout.includes(text)) {
      const news = await Promise.race([once(child.stdout, 'data'), finished])
      if (!Array.isArray(news) && !stdout.includes(text)) throw new Error(`ended: ${news.stderr}`)
    }
    return stdout
  }
  return { child, finished, printed, complained: () => stderr }
}
