import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'

/** The server under test has this core to itself; the load and the stores share the other. */
const SERVER_CORE = 0
const LOAD_CORE = 1

export const isPinned = availableParallelism() > 1 && !spawnSync('taskset', ['--version']).error

/** Leaves the server's core to it. What this process starts later is bound likewise. */
export function pinToLoadCore() {
  if (isPinned) execFileSync('taskset', ['-acp', String(LOAD_CORE), String(process.pid)])
}

/** Starts a Node process on the server's core. */
export function spawnServer(args, options) {
  const [command, ...before] = isPinned
    ? ['taskset', '-c', String(SERVER_CORE), process.execPath]
    : [process.execPath]
  const env = { ...process.env, NODE_ENV: 'production' }
  return spawn(command, [...before, ...args], { env, ...options })
}

/** Starts a Node process on the server's core that answers questions over IPC, one at a time. */
export function startServer(args) {
  const child = spawnServer(args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const died = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`${args.join(' ')} ended early (${code ?? signal})`)
  })
  died.catch(() => {})
  const answer = async () => (await Promise.race([once(child, 'message'), died]))[0]
  return {
    /** Its next message. */
    answer,
    async ask(question) {
      const answered = answer()
      child.send(question)
      const reply = await answered
      if (reply.fault !== undefined) throw new Error(reply.fault)
      return reply
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
