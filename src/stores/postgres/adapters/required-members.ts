/** Refuses an address, a configuration or another library's client, before the first request fails. */
export function requireMembers(
  subject: string,
  expected: string,
  client: unknown,
  functions: readonly string[],
): void {
  const missing = functions.some((name) => typeof memberOf(client, name) !== 'function')
  if (missing) throw new TypeError(`${subject}: expected ${expected}`)
}

function memberOf(client: unknown, name: string): unknown {
  const holds = (typeof client === 'object' && client !== null) || typeof client === 'function'
  return holds ? (client as Record<string, unknown>)[name] : undefined
}
