import { type Application, Converter, ReflectionKind, TypeScript as ts } from 'typedoc'
import type { Declaration, ShownType } from './reflection.js'
import { unionIn } from './reflection.js'

/**
 * Keeps what comments say of the cases of a union. typedoc does so where the union is all of a type, but
 * not where it is a part of an intersection. What it returns is called once the source has been read.
 */
export function keepCaseComments(application: Application): () => void {
  const declarations = new Map<Declaration, ts.TypeAliasDeclaration>()
  application.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (!reflection.kindOf(ReflectionKind.TypeAlias)) return
    const symbol = context.getSymbolFromReflection(reflection)
    const declaration = symbol?.declarations?.find(ts.isTypeAliasDeclaration)
    if (declaration) declarations.set(reflection as Declaration, declaration)
  })
  return () => {
    for (const [{ type }, declaration] of declarations) {
      const union: { elementSummaries?: ShownType['elementSummaries'] } | undefined = unionIn(type)
      const node = unionNodeIn(declaration.type)
      if (union !== undefined && node !== undefined) union.elementSummaries = commentsIn(node)
    }
  }
}

/** Where the union stands in the source: behind a name, too, that is of the same file. */
function unionNodeIn(node: ts.TypeNode): ts.UnionTypeNode | undefined {
  if (ts.isUnionTypeNode(node)) return node
  if (ts.isParenthesizedTypeNode(node)) return unionNodeIn(node.type)
  if (ts.isIntersectionTypeNode(node)) return node.types.map(unionNodeIn).find(Boolean)
  if (!ts.isTypeReferenceNode(node)) return undefined
  const name = node.typeName.getText()
  const named = node
    .getSourceFile()
    .statements.find((one) => ts.isTypeAliasDeclaration(one) && one.name.text === name)
  return named && unionNodeIn((named as ts.TypeAliasDeclaration).type)
}

/** A comment stands before the bar, outside of what follows it. */
function commentsIn({ types, pos }: ts.UnionTypeNode) {
  const text = types[0]?.getSourceFile().text ?? ''
  return types.map((type, index) => {
    const before = text.slice(types[index - 1]?.end ?? pos, type.getStart())
    const [, comment = ''] = /\/\*\*(.*?)\*\//s.exec(before) ?? []
    return [{ kind: 'text' as const, text: comment.replaceAll(/^\s*\*/gm, '').trim() }]
  })
}
