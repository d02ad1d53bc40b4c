/*
 * What is used of typedoc's reflections: pages are made of these alone, so that they can be made in a
 * test without typedoc, which needs a TypeScript of its own.
 */

/** A piece of a doc comment. */
export interface CommentPart {
  readonly text: string
}

export interface Comment {
  readonly summary: readonly CommentPart[]
}

/** A type, whose `toString` writes it as TypeScript does. */
export interface ShownType {
  readonly type: string
  /** Of a union or an intersection. */
  readonly types?: readonly ShownType[]
  /** Of a union: what its comments say of each member. */
  readonly elementSummaries?: readonly (readonly CommentPart[])[] | undefined
  /** Of an object type. */
  readonly declaration?: Declaration
  /** Of a type that is known by its name. */
  readonly name?: string
  /** What it names, where the reference shows that. */
  readonly reflection?: Declaration | undefined
  toString(): string
}

/** Something that has a name: an export, a member, a parameter. */
export interface Declaration {
  readonly name: string
  readonly comment?: Comment | undefined
  readonly flags?: { readonly isOptional: boolean; readonly isInherited?: boolean }
  readonly type?: ShownType | undefined
  readonly children?: readonly Declaration[] | undefined
  readonly signatures?: readonly Declaration[] | undefined
  readonly getSignature?: Declaration | undefined
  readonly parent?: Declaration | undefined
  /** `reference` for what is exported a second time. */
  readonly variant?: string
}

/** The text of a doc comment, in one line. */
export const summaryOf = (parts: readonly CommentPart[] | undefined): string =>
  (parts ?? [])
    .map(({ text }) => text)
    .join('')
    .replaceAll(/\s+/g, ' ')
    .trim()

/** What a doc comment says of something, in one line. */
export const meaningOf = ({ comment, signatures, getSignature }: Declaration): string =>
  [comment, getSignature?.comment, ...(signatures ?? []).map((one) => one.comment)]
    .map((one) => summaryOf(one?.summary))
    .find((text) => text !== '') ?? ''

/** What every error has from the language: its name says nothing new. */
const OF_ERRORS = new Set(['name', 'message', 'stack', 'cause'])

/**
 * The exports, members of exports and cases of unions that have no doc comment:
 * `ServiceAuthPolicy.issuer`, `KeySetEvent (case 2)`. What has but one value tells cases apart, and
 * needs none.
 */
export function undocumented(declarations: readonly Declaration[]): readonly string[] {
  return declarations.flatMap((declaration) => {
    // What is exported once more is documented where it is from.
    if (declaration.variant === 'reference') return []
    const { name, children = [], type } = declaration
    const members = [...children, ...membersOf(type)]
      .filter(needsWords)
      .map((one) => `.${one.name}`)
    const missing = [...members, ...casesWithoutWords(type)].map((path) => `${name}${path}`)
    return meaningOf(declaration) === '' ? [name, ...missing] : missing
  })
}

const needsWords = (member: Declaration): boolean =>
  meaningOf(member) === '' && !OF_ERRORS.has(member.name) && member.type?.type !== 'literal'

/** Those of an object type, and of all objects that an intersection is made of. */
export function membersOf(type: ShownType | undefined): readonly Declaration[] {
  if (type?.type === 'intersection') return (type.types ?? []).flatMap(membersOf)
  return type?.type === 'reflection' ? (type.declaration?.children ?? []) : []
}

/** The union that a type is, or that is a part of the intersection that it is. */
export function unionIn(type: ShownType | undefined): ShownType | undefined {
  if (type?.type === 'union') return type
  return type?.type === 'intersection' ? type.types?.map(unionIn).find(Boolean) : undefined
}

function casesWithoutWords(type: ShownType | undefined): readonly string[] {
  const union = unionIn(type)
  return (union?.types ?? []).flatMap((one, index) => {
    const isSilent = summaryOf(union?.elementSummaries?.[index]) === ''
    const isObject = one.type === 'reflection' && membersOf(one).length > 0
    return isSilent && isObject ? [` (case ${index + 1})`] : []
  })
}
