import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { delimiter, join } from 'node:path'

/** The server under test has this core to itself; load and Redis share the other. */
export const SERVER_CORE = 0
export const LOAD_CORE = 1

export const isPinned = availableParallelism() > 1 && onPath('taskset')

function onPath(name) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => isExecutable(folder, name))
}

export function isExecutable(folder, name) {
  try {
    accessSync(join(folder, name), constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** A TCP port of loopback that is free now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  return port
}

/** Starts a command on one core, where the machine can do that. */
export function spawnPinned(core, command, args, options) {
  if (!isPinned) return spawn(command, args, options)
  return spawn('taskset', ['-c', String(core), command, ...args], options)
}

/** Starts a Node process that answers questions over IPC, one at a time. */
export function startNode(core, file, args = [], flags = []) {
  const child = spawnPinned(core, process.execPath, [...flags, file, ...args], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const died = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`${file} ${args.join(' ')} ended early (${code ?? signal})`)
  })
  died.catch(() => {})

  const answer = async () => (await Promise.race([once(child, 'message'), died]))[0]
  return {
    pid: child.pid,
    /** Its next message. */
    answer,
    ask(question) {
      const answered = answer()
      child.send(question)
      return answered
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}
