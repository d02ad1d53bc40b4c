import { createHash } from 'node:crypto'
import { type CompiledScript, compileLua, LuaError, LuaTable, type LuaValue } from './lua.js'

/** A reply of Redis. Strings are bulk strings of bytes (latin1). */
export type Reply = number | string | null | Status | ReplyError | readonly Reply[]

export class Status {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export class ReplyError extends Error {}

type Value =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'hash'; readonly value: ReadonlyMap<string, string> }

/** A value, and when it ends, in ms of the server's clock. A command replaces it, never changes it. */
export type Stored = Value & { readonly endsAt: number }

/** The keys of a server, and the commands that the package uses. */
export class Keyspace {
  values = new Map<string, Stored>()
  /** What the last command has written: the keys, and what they held before. */
  readonly written = new Map<string, Stored | undefined>()
  /** Whether commands that need memory are refused. */
  isFull = false
  /** The server's clock in µs since the epoch, which stands still while a command runs. */
  timeUs = 0

  get timeMs(): number {
    return Math.floor(this.timeUs / 1000)
  }

  run(words: readonly string[]): Reply {
    const [name = '', ...args] = words
    const command = COMMANDS[name]
    if (command === undefined) return new ReplyError(`ERR unknown command '${name}'`)
    if (this.isFull && NEEDS_MEMORY.has(name)) {
      return new ReplyError("OOM command not allowed when used memory > 'maxmemory'.")
    }
    try {
      return command(this, args)
    } catch (error) {
      if (error instanceof ReplyError) return error
      throw error
    }
  }

  live(key: string): Stored | undefined {
    const stored = this.values.get(key)
    if (stored === undefined || stored.endsAt > this.timeMs) return stored
    this.values.delete(key)
    return undefined
  }

  of<T extends Value['type']>(type: T, key: string): (Stored & { readonly type: T }) | undefined {
    const stored = this.live(key)
    if (stored === undefined || stored.type === type) return stored as never
    throw new ReplyError('WRONGTYPE Operation against a key holding the wrong kind of value')
  }

  write(key: string, stored: Stored | undefined): void {
    if (!this.written.has(key)) this.written.set(key, this.values.get(key))
    if (stored === undefined) this.values.delete(key)
    else this.values.set(key, stored)
  }
}

const NEEDS_MEMORY = new Set(['SET', 'HSET'])
const INTEGER = /^-?\d+$/

function integer(text: string | undefined): number {
  if (text !== undefined && INTEGER.test(text)) return Number(text)
  throw new ReplyError('ERR value is not an integer or out of range')
}

type Command = (keys: Keyspace, args: readonly string[]) => Reply

/** Changes a hash. It is gone when it is empty. */
function changed(
  keys: Keyspace,
  key: string,
  changes: (fields: Map<string, string>) => number,
): number {
  const stored = keys.of('hash', key)
  const fields = new Map(stored?.value)
  const count = changes(fields)
  if (fields.size === 0 && stored === undefined) return count
  const endsAt = stored?.endsAt ?? Number.POSITIVE_INFINITY
  keys.write(key, fields.size === 0 ? undefined : { type: 'hash', value: fields, endsAt })
  return count
}

const COMMANDS: Readonly<Record<string, Command>> = {
  TIME: ({ timeUs }) => [String(Math.floor(timeUs / 1e6)), String(timeUs % 1e6)],
  GET: (keys, [key = '']) => keys.of('string', key)?.value ?? null,
  SET(keys, [key = '', value = '', unit, ttl]) {
    const ttlMs = unit === undefined ? Number.POSITIVE_INFINITY : integer(ttl)
    if (ttlMs <= 0) throw new ReplyError("ERR invalid expire time in 'set' command")
    keys.write(key, { type: 'string', value, endsAt: keys.timeMs + ttlMs })
    return new Status('OK')
  },
  DEL(keys, names) {
    const existing = names.filter((key) => keys.live(key) !== undefined)
    for (const key of existing) keys.write(key, undefined)
    return existing.length
  },
  PTTL(keys, [key = '']) {
    const stored = keys.live(key)
    if (stored === undefined) return -2
    return stored.endsAt === Number.POSITIVE_INFINITY ? -1 : stored.endsAt - keys.timeMs
  },
  PEXPIRE(keys, [key = '', ttl]) {
    const ttlMs = integer(ttl)
    const stored = keys.live(key)
    if (stored === undefined) return 0
    keys.write(key, ttlMs <= 0 ? undefined : { ...stored, endsAt: keys.timeMs + ttlMs })
    return 1
  },
  HGET: (keys, [key = '', field = '']) => keys.of('hash', key)?.value.get(field) ?? null,
  HLEN: (keys, [key = '']) => keys.of('hash', key)?.value.size ?? 0,
  HEXISTS: (keys, [key = '', field = '']) => (keys.of('hash', key)?.value.has(field) ? 1 : 0),
  HGETALL: (keys, [key = '']) => [...(keys.of('hash', key)?.value ?? [])].flat(),
  HSET: (keys, [key = '', field = '', value = '']) =>
    changed(keys, key, (fields) => {
      const { size } = fields
      return fields.set(field, value).size - size
    }),
  HDEL: (keys, [key = '', ...names]) =>
    changed(keys, key, (fields) => names.filter((name) => fields.delete(name)).length),
  /** Not at random: which rows it takes must not change how a story goes. */
  HRANDFIELD: (keys, [key = '', count]) =>
    [...(keys.of('hash', key)?.value ?? [])].slice(0, integer(count)).flat(),
}

const compiled = new Map<string, CompiledScript>()

/** Runs a script as `EVAL` does. */
export function runScript(
  keys: Keyspace,
  source: string,
  { names, args }: { readonly names: readonly string[]; readonly args: readonly string[] },
): Reply {
  const known = compiled.get(source)
  const run = known ?? compileLua(source)
  if (known === undefined) compiled.set(source, run)
  const pcall = (...words: LuaValue[]): LuaValue => toLua(keys.run(words.map(wordOf)))
  const redis = new LuaTable([
    ['pcall', pcall],
    [
      'call',
      (...words: LuaValue[]) => {
        const reply = pcall(...words)
        if (reply instanceof LuaTable && reply.has('err')) throw new LuaError(reply)
        return reply
      },
    ],
    ['sha1hex', (text: string) => createHash('sha1').update(text, 'latin1').digest('hex')],
  ])
  try {
    return fromLua(run({ KEYS: LuaTable.of(names), ARGV: LuaTable.of(args), redis })[0])
  } catch (error) {
    if (!(error instanceof LuaError)) throw error
    const isReply = error.value instanceof LuaTable
    return new ReplyError(isReply ? error.message : `ERR ${error.message}`)
  }
}

function wordOf(value: LuaValue): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number')
    return Number.isInteger(value) ? String(value) : value.toPrecision(17)
  throw new LuaError('ERR Lua redis lib command arguments must be strings or integers')
}

function toLua(reply: Reply): LuaValue {
  if (reply === null) return false
  if (reply instanceof ReplyError) return new LuaTable([['err', reply.message]])
  if (reply instanceof Status) return new LuaTable([['ok', reply.text]])
  return Array.isArray(reply) ? LuaTable.of(reply.map(toLua)) : (reply as string | number)
}

function fromLua(value: LuaValue): Reply {
  if (typeof value === 'number') return Math.trunc(value)
  if (typeof value === 'string') return value
  if (value === true) return 1
  if (!(value instanceof LuaTable)) return null
  const failure = value.get('err')
  if (failure !== undefined) return new ReplyError(String(failure))
  const status = value.get('ok')
  return status === undefined ? value.list().map(fromLua) : new Status(String(status))
}
