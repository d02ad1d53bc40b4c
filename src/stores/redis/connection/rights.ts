import { type Script, script } from './redis-call.js'

/**
 * Makes a script that runs commands, given as Lua tables, and replies with their errors, as pairs of command
 * and message.
 */
export const tryScript = (commands: string): Script =>
  script(`
local refused = {}
for _, call in ipairs({${commands}}) do
  local reply = redis.pcall(unpack(call))
  if type(reply) == 'table' and reply.err then refused[#refused + 1] = { call[1], reply.err } end
end
return refused
`)

/** Permission errors of Redis outside and inside scripts, from version 6.2. */
const NO_PERMISSION = /^NOPERM|no permissions|can't run this command|can't access at least one/i

/** Returns what the user may not do, from the reply of a `tryScript`; `undefined` if nothing. */
export function missingPermission(reply: unknown): string | undefined {
  const pairs = (reply as unknown[][]).map((pair) => pair.map(String))
  const refused = pairs.find(([, text = '']) => NO_PERMISSION.test(text))
  return refused && `run ${refused[0]} in scripts`
}

/** Returns what an error says that the user may not do; `undefined` if it is another error. */
export function refusedRight(message: string, prefix: string): string | undefined {
  if (!message.startsWith('NOPERM')) return undefined
  const [, command] = /run the '([^']+)' command/.exec(message) ?? []
  if (command !== undefined) return `run ${command.replace('|', ' ').toUpperCase()}`
  return `access keys that begin with ${JSON.stringify(prefix)}`
}
