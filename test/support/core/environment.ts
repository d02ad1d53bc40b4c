import { StartError } from './start-error.js'

/** It only gives access to a core on this machine. */
const EXAMPLE_API_KEY = 'example-key-for-development-only'

const DEFAULT_PORTS = { identityCore: 3567, issuer: 3568 } as const

export type PortName = keyof typeof DEFAULT_PORTS

export const PORT_VARIABLES: Readonly<Record<PortName, string>> = {
  identityCore: 'IDENTITY_CORE_PORT',
  issuer: 'ISSUER_PORT',
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

export function apiKeyFrom(name: string): string {
  return textFrom(name) ?? EXAMPLE_API_KEY
}

/** Reads a variable; an empty one counts as not set. */
export function textFrom(name: string): string | undefined {
  return process.env[name] || undefined
}
