import type { IncomingHttpHeaders } from 'node:http'
import { Refused } from '../../../../src/testing/core/mint.js'
import { BadInput } from './input.js'

/** The version of the core to imitate, if versions differ. */
export type CoreVersion = '10.1' | '11.4' | '12.1'

/** The interface versions (CDI) that each core supports. An SDK requests this list first. */
export const INTERFACE_VERSIONS: Readonly<Record<CoreVersion, readonly string[]>> = {
  '10.1': interfaceVersions('5.3'),
  '11.4': interfaceVersions('5.4'),
  '12.1': interfaceVersions('5.6'),
}

function interfaceVersions(newest: string): readonly string[] {
  const second = Array.from({ length: 15 }, (_, index) => `2.${index + 7}`)
  const fifth = Array.from({ length: 7 }, (_, index) => `5.${index}`)
  const versions = [...second, '3.0', '3.1', '4.0', ...fifth]
  return versions.slice(0, versions.indexOf(newest) + 1)
}

/** The version of the interface that a request is written for. */
export interface RequestedVersion {
  readonly text: string
  /** Whether the core lists it in exactly this spelling. */
  readonly isOffered: boolean
  isBefore(version: string): boolean
}

/**
 * Returns the newest version if the request names none.
 * @throws {Refused | BadInput} if it is not a version, or newer than the core
 */
export function requestedVersion(
  headers: IncomingHttpHeaders,
  core: CoreVersion,
): RequestedVersion {
  const offered = INTERFACE_VERSIONS[core]
  const newest = offered.at(-1) ?? ''
  const text = String(headers['cdi-version'] ?? newest)
  if (!/^\d+(\.\d+)*$/.test(text)) {
    throw new Refused(500, 'java.lang.IllegalArgumentException: Invalid version format')
  }
  if (compare(newest, text) < 0) throw notSupported(text)
  return {
    text,
    isOffered: offered.includes(text),
    isBefore: (version) => compare(text, version) < 0,
  }
}

export function notSupported(version: string): BadInput {
  return new BadInput(`cdi-version ${version} not supported`)
}

/** Returns a negative number if `a` is older. A missing part counts as 0. */
function compare(a: string, b: string): number {
  const [left, right] = [a.split('.'), b.split('.')]
  const length = Math.max(left.length, right.length)
  const part = (parts: readonly string[], index: number) => Number(parts[index] ?? 0)
  return (
    Array.from({ length }, (_, index) => part(left, index) - part(right, index)).find(Boolean) ?? 0
  )
}
