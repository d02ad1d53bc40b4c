import { isObject } from '../../base/options.js'
import { blamesTheUser, duplicateIn, writtenCodeOf } from './core-messages.js'
import { CUT, isValidationText } from './known-texts.js'

/** The texts before and after a login method or a key that the core quotes. */
const QUOTATIONS: readonly (readonly [before: string, after: string])[] = [
  ["LoginMethod '", "' has no tenantId"],
  ['TOTP secretKey ', ' is too long.'],
]
/** Matches hashes by the prefixes that the core accepts. */
const HASH = /\$(?:2[abxy]?|argon2(?:id|i|d)?|f_scrypt)\$[^\s'"]*/gi
/** Matches the part of a text in which a database quotes a statement with its values, or a row. */
const STATEMENT = /(?:Batch entry \d|Failing row contains|INSERT INTO |UPDATE \S+ SET )[\s\S]*$/

/** Cuts up to the last `after`, because the quoted text may contain `after` too. */
function withoutQuotation(text: string, [before, after]: readonly [string, string]): string {
  const start = text.indexOf(before) + before.length
  const end = text.lastIndexOf(after)
  if (start < before.length || end < start) return text
  return `${text.slice(0, start)}${CUT}${text.slice(end)}`
}

function withoutStatement(text: string): string {
  return text.replace(STATEMENT, (statement) => {
    const duplicate = duplicateIn(statement)
    return duplicate === undefined ? CUT : `${CUT} ${duplicate} ${CUT}`
  })
}

/** A shorter secret is not cut out: it may also be a part of a word, and the gap in the word would reveal it. */
const SHORTEST_SECRET = 4

/**
 * Removes quoted secrets from a text of the core. `secrets` are the secrets of the records that the text is
 * about; they are cut out only of texts of unknown form.
 */
export function cutSecrets(text: string, secrets: readonly string[]): string {
  const cut = QUOTATIONS.reduce(withoutQuotation, withoutStatement(text)).replace(HASH, CUT)
  if (isOfKnownForm(cut)) return cut
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, CUT), cut)
}

/** A known text quotes only e-mail addresses and ids. A cut would reveal a secret that equals one of its words. */
function isOfKnownForm(text: string): boolean {
  const code = writtenCodeOf(text)
  return code === undefined ? isValidationText(text) : blamesTheUser(code)
}

/** Returns the passwords, hashes and TOTP keys of a record or a row. */
export function secretsOf(record: unknown): string[] {
  if (!isObject(record)) return []
  const methods = recordsIn(record['loginMethods'])
  const passwords = methods.flatMap((each) => [each['passwordHash'], each['plainTextPassword']])
  const keys = recordsIn(record['totpDevices']).map((device) => device['secretKey'])
  return [...passwords, ...keys].filter(isLongEnough)
}

const recordsIn = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isObject) : []

const isLongEnough = (value: unknown): value is string =>
  typeof value === 'string' && value.length >= SHORTEST_SECRET
