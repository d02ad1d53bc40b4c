import { z } from 'zod'
import { isObject } from '../../base/options.js'

/** Approved callers: a list of names, or an object of names and the permissions each may have. */
export type CallersOption = readonly string[] | Readonly<Record<string, readonly string[]>>

/** The approved callers and their ceilings; `undefined` for a caller without one. */
export type Ceilings = ReadonlyMap<string, ReadonlySet<string> | undefined>

const isName = (value: unknown): value is string => typeof value === 'string' && value !== ''

export const callersOption = (): z.ZodPipe<z.ZodUnknown, z.ZodTransform<Ceilings, unknown>> =>
  z.unknown().transform((input, context): Ceilings => {
    const report = (message: string, path: PropertyKey[] = []): void => {
      context.issues.push({ code: 'custom', message, path, input })
    }
    if (Array.isArray(input)) return fromList(input, report)
    if (isObject(input)) return fromRecord(input, report)
    report('must be a list of caller names or an object of caller names with their permissions')
    return new Map()
  })

type ReportFault = (message: string, path?: PropertyKey[]) => void

function fromList(names: readonly unknown[], report: ReportFault): Ceilings {
  if (names.length === 0) report('must name at least one caller')
  const ceilings = new Map<string, undefined>()
  // `entries` also visits the holes of a sparse list, which `forEach` skips.
  for (const [index, name] of names.entries()) {
    if (isName(name)) ceilings.set(name, undefined)
    else report('must be a non-empty string', [index])
  }
  return ceilings
}

// A map, not the record: a caller named `__proto__` inherits nothing.
function fromRecord(record: Record<string, unknown>, report: ReportFault): Ceilings {
  const entries = Object.entries(record)
  if (entries.length === 0) report('must name at least one caller')
  const ceilings = new Map<string, ReadonlySet<string>>()
  for (const [name, permissions] of entries) {
    if (name === '') report('must not hold an empty caller name')
    if (Array.isArray(permissions) && Array.from(permissions).every(isName)) {
      ceilings.set(name, new Set(permissions))
    } else report('must be a list of non-empty strings', [name])
  }
  return ceilings
}

/** Required permissions must fit at least one ceiling, or everybody would be refused. */
export function unreachablePermissions(policy: Readonly<Record<string, unknown>>): string[] {
  const { callers, permissions } = policy
  if (!isObject(callers) || !Array.isArray(permissions)) return []
  const ceilings = Object.values(callers).filter(Array.isArray)
  const reachable = ceilings.some((ceiling) => permissions.every((name) => ceiling.includes(name)))
  return reachable || ceilings.length === 0
    ? []
    : ['permissions must be within the ceiling of at least one caller in callers']
}
