import { digestOfParts, textOfParts } from '../base/digest.js'

/** The scope of a key, so that no caller ever gets another's result. */
export interface KeyScope {
  readonly issuer: string
  readonly audience: string
  readonly caller: string
  readonly operation: string
}

/** The name of a key's record. */
export const recordKey = ({ issuer, audience, caller, operation }: KeyScope, key: string): string =>
  digestOfParts([issuer, audience, caller, operation, key])

/** The default operation: method, mount path as sent and route pattern. */
export const operationOf = (method: string, mountPath: string, route: unknown): string =>
  textOfParts([method, mountPath, patternText(route)])

/** A route is a string, a regular expression, or a list of them. No two routes give the same text. */
const patternText = (route: unknown): string =>
  Array.isArray(route)
    ? textOfParts(['list', ...route.map(patternText)])
    : textOfParts([typeof route, String(route)])
