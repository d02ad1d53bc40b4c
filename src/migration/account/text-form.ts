const CUT = '…'
const NAME = '<name>'

/** Ids of tenants and users and names of roles; neither an e-mail address nor a phone number is one. */
const PLAIN_NAME = /^(?=.*[A-Za-z])[\w.:-]{1,64}$/

const RECIPE = '(?:an emailpassword|a thirdparty|a passwordless) recipe'

/** What may stand in a form, and which of it may be told. */
const HOLES: Readonly<Record<string, readonly [pattern: string, told: RegExp | undefined]>> = {
  [CUT]: ['[\\s\\S]*?', undefined],
  [NAME]: ['[\\s\\S]*?', PLAIN_NAME],
  '<field>': [
    '(?:externalUserId|email|phoneNumber|thirdParty(?:User)?Id|secretKey|deviceName)',
    /^/,
  ],
  '<word>': ['\\w{1,40}', /^/],
  '<number>': ['\\d{1,9}', /^/],
  '<type>': ['(?:array of )?(?:string|integer|boolean|object)', /^/],
  '<suffix>': [`(?: for (?:a user role|a totp device|a loginMethod|${RECIPE}))?\\.?`, /^/],
}
const HOLE = new RegExp(`(${Object.keys(HOLES).join('|')})`)

/** A form of a text of the core, at a place of a text. */
export interface TextForm {
  readonly pattern: RegExp
  /** Literal parts and holes by turns. */
  readonly parts: readonly string[]
}

/** A text in its form ends where the next begins, or at the end. */
export function textForm(form: string): TextForm {
  const parts = form.split(HOLE)
  const patterns = parts.map((part) => {
    const hole = HOLES[part]
    return hole === undefined ? escaped(part) : `(${hole[0]})`
  })
  return { pattern: new RegExp(`${patterns.join('')}(?=, |$)`, 'y'), parts }
}

/** How texts are cut. */
interface Cutting {
  readonly forms: readonly TextForm[]
  /** Asked for each name that is quoted; what is made like no name is never told. */
  readonly mayBeTold: (name: string) => boolean
}

/** Texts of these forms, separated by commas, without what they quote. What is of none is cut. */
export function cutTexts(text: string, cutting: Cutting): string {
  const told: string[] = []
  let place = 0
  do {
    const found = matchAt(text, place, cutting)
    if (found === undefined) return [...told, CUT].join(', ')
    told.push(found.text)
    place = found.end + ', '.length
  } while (place < text.length)
  return told.join(', ')
}

function matchAt(text: string, place: number, { forms, mayBeTold }: Cutting) {
  for (const { pattern, parts } of forms) {
    pattern.lastIndex = place
    const match = pattern.exec(text)
    if (match === null) continue
    const quoted = match.slice(1)
    const told = parts.map((part) => {
      const hole = HOLES[part]
      if (hole === undefined) return part
      const value = quoted.shift() ?? ''
      const isCut = part === NAME && !mayBeTold(value)
      return hole[1]?.test(value) && !isCut ? value : CUT
    })
    return { text: told.join(''), end: place + match[0].length }
  }
  return undefined
}

const escaped = (literal: string): string => literal.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
