import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startProgram } from '../receivers/start-program.js'
import type { FromPlayer, ToPlayer } from './messages.js'
import type { Played } from './tour-state.js'

/** The process in which the steps of the tour are played. */
export interface Player {
  /** Rejects when the process has ended, or does not end the step in time. */
  play(title: string): Promise<Played>
  readonly isGone: boolean
  /** Ends the process; resolves when it is gone. */
  end(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('./player/main.ts', import.meta.url))
const START_LIMIT_MS = 60_000
const STEP_LIMIT_MS = 30_000

/** Starts a player; resolves once its stage is set. */
export async function launchPlayer(program: string = PROGRAM): Promise<Player> {
  const child = startProgram(program)
  let isGone = false
  const gone = once(child, 'close')
    .catch(() => undefined)
    .then(() => {
      isGone = true
    })
  child.on('error', () => undefined)
  const player: Player = {
    async play(title) {
      const answer = nextMessage(child, { gone, limitMs: STEP_LIMIT_MS })
      sendTo(child, { type: 'play', title })
      const message = await answer
      if (message.type !== 'played') throw new Error('the tour has lost its thread')
      return message.played
    },
    get isGone() {
      return isGone
    },
    async end() {
      child.kill('SIGKILL')
      await gone
    },
  }
  try {
    await nextMessage(child, { gone, limitMs: START_LIMIT_MS })
    return player
  } catch (error) {
    await player.end()
    throw error
  }
}

function sendTo(child: ChildProcess, message: ToPlayer): void {
  if (child.connected) child.send(message, () => undefined)
}

async function nextMessage(
  child: ChildProcess,
  { gone, limitMs }: { gone: Promise<void>; limitMs: number },
): Promise<FromPlayer> {
  const limit = AbortSignal.timeout(limitMs)
  const ended = gone.then(() => {
    throw new Error('the process of the tour has ended')
  })
  const late = () => new Error(`the process of the tour was silent for ${limitMs / 1000} s`)
  const message = once(child, 'message', { signal: limit }).catch(() => {
    throw late()
  })
  const [found] = await Promise.race([message, ended])
  return found as FromPlayer
}
