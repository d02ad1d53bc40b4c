import type { Findings } from './collect-findings.js'
import { type ReadMethod, readLoginMethod } from './login-method.js'
import { type JsonObject, type Reading, required } from './read-field.js'
import { lacks, type UserContext } from './validation-context.js'

const SUFFIX = ' for a loginMethod.'

export function readLoginMethods(record: Reading, context: UserContext): ReadMethod[] {
  const { findings } = record
  const given = required(record, 'loginMethods', 'array of object')
  if (given === undefined) return []
  if (given.length === 0) {
    findings.refuse('no_login_method', 'loginMethods', 'At least one loginMethod is required.')
    return []
  }
  if (given.length > 1 && lacks(context, 'account_linking')) {
    const message = 'Account linking must be enabled to import multiple loginMethods.'
    findings.refuse('feature_missing', 'loginMethods', message)
  }
  checkPrimaries(given, findings, context)
  const methods: ReadMethod[] = []
  for (const [index, object] of given.entries()) {
    const field = `loginMethods[${index}]`
    const method = readLoginMethod({ object, field, suffix: SUFFIX, findings }, context)
    if (method !== undefined) methods.push(method)
  }
  return methods
}

function checkPrimaries(
  methods: readonly JsonObject[],
  findings: Findings,
  context: UserContext,
): void {
  const primaries = methods.flatMap((method, index) => (isPrimary(method) ? [index] : []))
  for (const index of primaries.slice(1)) {
    const message = 'No two loginMethods can have isPrimary as true.'
    findings.refuse('two_primaries', `loginMethods[${index}].isPrimary`, message)
  }
  if (primaries.length === 0 && methods.length > 1) {
    const message =
      'Without isPrimary on one of them, core 12 makes a user of each; 10.1 and 11.4 link them.'
    findings.warn('no_primary', 'loginMethods', message)
  }
  if (primaries.length > 0 && methods.length === 1 && lacks(context, 'account_linking')) {
    const message = 'A primary user needs account linking: without it the import fails.'
    findings.warn('primary_without_linking', 'loginMethods[0].isPrimary', message)
  }
}

const isPrimary = (method: JsonObject): boolean =>
  Object.hasOwn(method, 'isPrimary') && method['isPrimary'] === true
