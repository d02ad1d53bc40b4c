import { StartError } from './start-error.js'

/** The key that the example's services share. It only gives access to a core on this machine. */
const EXAMPLE_API_KEY = 'example-key-for-development-only'

export const DEFAULT_PORTS = {
  identityCore: 3567,
  issuer: 3568,
  controlRoom: 4400,
  orders: 4001,
  billing: 4002,
} as const

export type PortName = keyof typeof DEFAULT_PORTS

export const PORT_VARIABLES: Readonly<Record<PortName, string>> = {
  identityCore: 'IDENTITY_CORE_PORT',
  issuer: 'ISSUER_PORT',
  controlRoom: 'CONTROL_ROOM_PORT',
  orders: 'ORDERS_PORT',
  billing: 'BILLING_PORT',
}

/** Reads a TCP port from the environment; 0 selects a free one. */
export const portOf = (name: PortName): number =>
  integerFrom(PORT_VARIABLES[name], DEFAULT_PORTS[name], { min: 0, max: 65_535 })

export function integerFrom(
  name: string,
  fallback: number,
  { min, max }: { min: number; max: number },
): number {
  const text = textFrom(name)
  if (text === undefined) return fallback
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new StartError(`${name} must be a whole number from ${min} to ${max}`)
}

/** Reads an `http(s)` address without a trailing slash, path, query or fragment. */
export function addressFrom(name: string, fallback: string): string {
  const text = textFrom(name) ?? fallback
  if (URL.canParse(text)) {
    const { origin, protocol } = new URL(text)
    if (/^https?:$/.test(protocol) && text === origin) return text
  }
  throw new StartError(`${name} must be an address such as ${fallback}, without a path`)
}

export function apiKeyFrom(name: string): string {
  return textFrom(name) ?? EXAMPLE_API_KEY
}

/** Reads a variable; an empty one counts as not set. */
export function textFrom(name: string): string | undefined {
  return process.env[name] || undefined
}
