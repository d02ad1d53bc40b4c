import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { compile } from './compile.js'
import { enter, HERE, type Place } from './place.js'

export interface LaunchOptions {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Options of Node, such as `--expose-gc`. */
  readonly nodeArgs?: readonly string[]
  /** Default: `HERE`. */
  readonly place?: Place
}

/** A program in a child process, on the Node of this process. */
export interface Launched<Message> {
  readonly child: ChildProcess
  /** The first message of the program, which says that it is ready. */
  readonly greeting: Message
  /** Sends SIGKILL; resolves when the process has ended. */
  kill(): Promise<void>
}

/** Starts a TypeScript program; resolves with its first message. */
export async function launch<Message>(
  program: URL,
  { args = [], env = {}, nodeArgs = [], place = HERE }: LaunchOptions = {},
): Promise<Launched<Message>> {
  const [execPath = '', ...execArgv] = [...enter(place), process.execPath, ...nodeArgs]
  const child = fork(await compile(program), args, {
    execPath,
    execArgv,
    env: { ...process.env, ...env },
    stdio: ['inherit', 'pipe', 'pipe', 'ipc'],
  })
  // The output goes through this process, so that the search for secrets sees it.
  child.stdout?.on('data', (chunk) => process.stdout.write(chunk))
  child.stderr?.on('data', (chunk) => process.stderr.write(chunk))
  const exited = once(child, 'exit')
  const failed = exited.then(([code, signal]) => {
    throw new Error(`${program.pathname} ended with ${code ?? signal} before it was ready`)
  })
  const [greeting] = await Promise.race([once(child, 'message'), failed])
  failed.catch(() => {})
  return {
    child,
    greeting,
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
