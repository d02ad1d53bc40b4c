import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { knowEnvironment } from '../secret-search/index.js'
import { compile } from './compile.js'
import { enter, HERE, type Place } from './place.js'

export interface LaunchOptions {
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Node's own, such as `--expose-gc`. */
  readonly nodeArgs?: readonly string[]
  /** Here without it. */
  readonly place?: Place
}

/** A program in a process of its own, on this Node. */
export interface Launched<Message> {
  readonly child: ChildProcess
  /** The message by which it said that it is ready. */
  readonly greeting: Message
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>
}

/** Starts a TypeScript program; resolves with its first message. */
export async function launch<Message>(
  program: URL,
  { args = [], env = {}, nodeArgs = [], place = HERE }: LaunchOptions = {},
): Promise<Launched<Message>> {
  knowEnvironment(env)
  const [execPath = '', ...execArgv] = [...enter(place), process.execPath, ...nodeArgs]
  const child = fork(await compile(program), args, {
    execPath,
    execArgv,
    env: { ...process.env, ...env },
    stdio: ['inherit', 'pipe', 'pipe', 'ipc'],
  })
  // Through this process, so that the search for secrets sees it.
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
