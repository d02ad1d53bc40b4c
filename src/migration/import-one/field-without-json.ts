import { fieldOf } from '../record-validation/field.js'

/**
 * The path of a value that JSON has no form for, such as a BigInt, or whose `toJSON` throws;
 * `undefined` when all can be written. Takes what is of a limited depth.
 */
export function fieldWithoutJson(value: unknown, field = ''): string | undefined {
  if (isWritable(value)) return undefined
  const members = typeof value === 'object' && value !== null ? Object.entries(value) : []
  const isList = Array.isArray(value)
  for (const [name, member] of members) {
    const place = isList ? `${field}[${name}]` : fieldOf(field, name)
    const found = fieldWithoutJson(member, place)
    if (found !== undefined) return found
  }
  return field
}

function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}
