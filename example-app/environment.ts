/** An error that whoever starts a service can fix. The command line prints its message alone, in one line. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** The key of the example's core, which is that of the README. */
export const EXAMPLE_API_KEY = 'local-development-key'

/** Where the services usually are. Each variable names another port; 0 is a free one. */
const USUAL_PORTS = { CORE_PORT: 3567, ORDERS_PORT: 4001, BILLING_PORT: 4002, ROOM_PORT: 4400 }

export type PortName = keyof typeof USUAL_PORTS

/** Reads a variable; an empty one counts as not set. */
export const textFrom = (name: string): string | undefined => process.env[name] || undefined

/** @throws {StartError} */
export function integerFrom(name: string, { max }: { max: number }): number | undefined {
  const text = textFrom(name)
  if (text === undefined) return undefined
  if (/^\d+$/.test(text) && Number(text) <= max) return Number(text)
  throw new StartError(`${name} must be a whole number from 0 to ${max}`)
}

/** Reads an `http(s)` address without a path. @throws {StartError} */
export function addressFrom(name: string, fallback: string): string {
  const text = textFrom(name) ?? fallback
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && text === url.origin) return text
  throw new StartError(`${name} must be an address such as ${fallback}, without a path`)
}

/** Whose tokens count, and where their keys are: an `ISSUER` publishes its own, the usual one has those of the core. */
export function issuerFrom(coreUrl: string, usual: string) {
  const jwksUri = textFrom('ISSUER') ? undefined : `${coreUrl}/.well-known/jwks.json`
  return { issuer: addressFrom('ISSUER', usual), jwksUri }
}

export const usualAddress = (name: PortName): string => `http://127.0.0.1:${USUAL_PORTS[name]}`

/**
 * Opens a server at the port of its variable, or else at its usual one, or else, where that is in use, at a free one.
 * @throws {StartError} if the port that the variable names cannot be used
 */
export async function atPort<Opened>(
  name: PortName,
  open: (port: number) => Promise<Opened>,
): Promise<Opened> {
  const given = integerFrom(name, { max: 65_535 })
  try {
    return await open(given ?? USUAL_PORTS[name])
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error
    if (given === undefined) return open(0)
    throw new StartError(`port ${given} cannot be used (${code}); set ${name} to another one`)
  }
}

/** Calls `make` with options from the environment; turns a `TypeError` into a `StartError`. */
export function explainingOptions<Made>(make: () => Made): Made {
  try {
    return make()
  } catch (error) {
    if (error instanceof TypeError) throw new StartError(error.message)
    throw error
  }
}
