import { isRecord } from '../../base/options.js'
import { fieldOf } from '../record-validation/field.js'

type Metadata = Readonly<Record<string, unknown>>

/** What of the record's metadata the account does not have. */
export function compareMetadata(wanted: Metadata, given: Metadata): string[] {
  return compareObjects(wanted, given, 'userMetadata')
}

function compareObjects(wanted: Metadata, given: Metadata, field: string): string[] {
  const differences: string[] = []
  for (const name of Object.keys(wanted)) {
    const value = wanted[name]
    // The core drops such members.
    if (value === null) continue
    const there = Object.hasOwn(given, name) ? given[name] : undefined
    if (value === there) continue
    if (isRecord(value) && isRecord(there)) {
      differences.push(...compareObjects(value, there, fieldOf(field, name)))
    } else if (!isSame(value, there)) differences.push(fieldOf(field, name))
  }
  return differences
}

/** A list is compared as a whole: it has no names by which elements could be found again. */
function isSame(wanted: unknown, given: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(given) || given.length !== wanted.length) return false
    return wanted.every((element, index) => isSame(element, given[index]))
  }
  if (isRecord(wanted)) return isRecord(given) && compareObjects(wanted, given, '').length === 0
  return wanted === given
}
