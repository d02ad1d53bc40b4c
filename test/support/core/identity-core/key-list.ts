import { readKeysFile, writeKeysFile } from './keys-file.js'
import { isPublished, type RotationSchedule } from './rotation.js'
import { isDynamic, type SigningKey } from './signing-key.js'

/** The keys of the core, the same on disk and in memory. */
export interface KeyList {
  /** Newest first, without expired keys. */
  dynamic(): readonly SigningKey[]
  static(): readonly SigningKey[]
  /** Runs one change at a time: two requests that find a key due must not make two keys. */
  change<Result>(work: () => Promise<Result>): Promise<Result>
  add(key: SigningKey): Promise<void>
  remove(kid: string): Promise<boolean>
}

export interface KeyListOptions {
  readonly schedule: RotationSchedule
  readonly clock: () => number
  /** Without it, the keys are in memory only. */
  readonly keysFile?: string | undefined
}

export async function openKeyList(options: KeyListOptions): Promise<KeyList> {
  const { schedule, clock, keysFile } = options
  let keys = keysFile === undefined ? [] : newestFirst(await readKeysFile(keysFile))
  let lastChange: Promise<unknown> = Promise.resolve()

  const isOver = (key: SigningKey) => isDynamic(key) && !isPublished(key, schedule, clock())

  async function replace(next: readonly SigningKey[]): Promise<void> {
    if (keysFile !== undefined) await writeKeysFile(keysFile, next)
    keys = newestFirst(next)
  }

  return {
    dynamic: () => keys.filter((key) => isDynamic(key) && !isOver(key)),
    static: () => keys.filter((key) => !isDynamic(key)),
    change(work) {
      const done = lastChange.then(work)
      lastChange = done.catch(() => undefined)
      return done
    },
    add: (key) => replace([...keys.filter((held) => !isOver(held)), key]),
    async remove(kid) {
      const rest = keys.filter((key) => key.kid !== kid)
      const wasHeld = rest.length < keys.length
      if (wasHeld) await replace(rest)
      return wasHeld
    },
  }
}

function newestFirst(keys: readonly SigningKey[]): readonly SigningKey[] {
  return keys.toSorted((a, b) => b.createdMs - a.createdMs)
}
