import luaparse, { type Expression, type Statement } from 'luaparse'

/*
 * Compiles the Lua of a Redis script to JavaScript, so that the simulation runs the scripts of the package and no
 * copy of them. It knows the part of Lua 5.1 that they use, and throws for the rest. A string is a JavaScript string
 * of bytes (latin1), `nil` is `undefined`, and a function returns one value, or a list of values.
 */

export type LuaValue = string | number | boolean | undefined | LuaTable | LuaFunction
type LuaFunction = (...args: never[]) => LuaValue | readonly LuaValue[]

export class LuaTable extends Map<LuaValue, LuaValue> {
  static of(list: readonly LuaValue[]): LuaTable {
    return new LuaTable(list.map((value, index) => [index + 1, value]))
  }

  override set(key: LuaValue, value: LuaValue): this {
    if (value === undefined) this.delete(key)
    else super.set(key, value)
    return this
  }

  list(): LuaValue[] {
    const list: LuaValue[] = []
    while (this.has(list.length + 1)) list.push(this.get(list.length + 1))
    return list
  }
}

/** What a script throws: a text, or the table of a failed command. */
export class LuaError extends Error {
  readonly value: LuaValue

  constructor(value: LuaValue) {
    super(String(value instanceof LuaTable ? value.get('err') : value))
    this.value = value
  }
}

/** A compiled script. It gets `KEYS`, `ARGV` and `redis`, and returns a list of values. */
export type CompiledScript = (globals: Readonly<Record<string, LuaValue>>) => readonly LuaValue[]

export function compileLua(source: string): CompiledScript {
  const { body } = luaparse.parse(source, {
    luaVersion: '5.1',
    encodingMode: 'pseudo-latin1',
    scope: true,
  })
  const compiled = new Function('lua', 'globals', `'use strict'; ${block(body)} return []`)
  return (globals) => compiled(RUNTIME, { ...LIBRARY, ...globals })
}

/** No word of JavaScript, and no name of the runtime, has this prefix. */
const local = (name: string): string => `$${name}`

function unsupported(what: string | undefined): never {
  throw new TypeError(`a script uses ${what}, which the simulation cannot run`)
}

const block = (statements: readonly Statement[]): string => statements.map(statement).join('\n')

function statement(node: Statement): string {
  switch (node.type) {
    case 'LocalStatement':
      return `let [${node.variables.map(single)}] = ${list(node.init)};`
    case 'AssignmentStatement': {
      const targets = node.variables.map((target, index) => assignment(target, `values[${index}]`))
      return `{ const values = ${list(node.init)}; ${targets.join(' ')} }`
    }
    case 'CallStatement':
      return `${single(node.expression)};`
    case 'ReturnStatement':
      return `return ${list(node.arguments)};`
    case 'DoStatement':
      return `{ ${block(node.body)} }`
    case 'IfStatement':
      return node.clauses
        .map((clause) => {
          const body = `{ ${block(clause.body)} }`
          return clause.type === 'ElseClause' ? body : `if (${isTrue(clause.condition)}) ${body}`
        })
        .join(' else ')
    case 'FunctionDeclaration':
      return `const ${single(node.identifier)} = ${closure(node)};`
    case 'ForNumericStatement': {
      const variable = local(node.variable.name)
      const [start, end] = [single(node.start), single(node.end)]
      const step = node.step === null ? 1 : single(node.step)
      return `for (const ${variable} of lua.range(${start}, ${end}, ${step})) { ${block(node.body)} }`
    }
    case 'ForGenericStatement': {
      const variables = node.variables.map(single)
      return `for (const [${variables}] of lua.each(${single(node.iterators[0] ?? null)})) { ${block(node.body)} }`
    }
    default:
      return unsupported(node.type)
  }
}

function assignment(target: Expression, value: string): string {
  switch (target.type) {
    case 'IndexExpression':
      return `lua.table(${single(target.base)}).set(${single(target.index)}, ${value});`
    case 'MemberExpression':
      return `lua.table(${single(target.base)}).set('${target.identifier.name}', ${value});`
    default:
      return `${single(target)} = ${value};`
  }
}

function closure(node: { parameters: readonly Expression[]; body: readonly Statement[] }): string {
  const parameters = node.parameters.map((each) =>
    each.type === 'VarargLiteral' ? '...rest' : single(each),
  )
  return `((${parameters}) => { ${block(node.body)} return [] })`
}

/** The list of the values of several expressions; the last may give many. */
function list(nodes: readonly Expression[]): string {
  const values = nodes.map((node, index) =>
    index === nodes.length - 1 && (node.type === 'CallExpression' || node.type === 'VarargLiteral')
      ? `...${multiple(node)}`
      : single(node),
  )
  return `[${values}]`
}

function multiple(node: Expression): string {
  if (node.type === 'VarargLiteral') return 'rest'
  if (node.type !== 'CallExpression') return unsupported(node.type)
  return `lua.call(${single(node.base)}, ${list(node.arguments)})`
}

const isTrue = (node: Expression): string => `lua.isTrue(${single(node)})`

/** An expression that gives one value. */
function single(node: Expression | null): string {
  switch (node?.type) {
    case 'StringLiteral':
    case 'NumericLiteral':
    case 'BooleanLiteral':
      return JSON.stringify(node.value)
    case 'NilLiteral':
      return 'undefined'
    case 'Identifier':
      return (node as { isLocal?: boolean }).isLocal ? local(node.name) : `globals.${node.name}`
    case 'CallExpression':
    case 'VarargLiteral':
      return `${multiple(node)}[0]`
    case 'FunctionDeclaration':
      return closure(node)
    case 'IndexExpression':
      return `lua.table(${single(node.base)}).get(${single(node.index)})`
    case 'MemberExpression':
      return `lua.table(${single(node.base)}).get('${node.identifier.name}')`
    case 'LogicalExpression': {
      const [left, right] = [single(node.left), single(node.right)]
      return `lua.${node.operator}(${left}, () => ${right})`
    }
    case 'UnaryExpression':
      if (node.operator === 'not') return `!${isTrue(node.argument)}`
      return `lua['unary ${node.operator}'](${single(node.argument)})`
    case 'BinaryExpression':
      return `lua['${node.operator}'](${single(node.left)}, ${single(node.right)})`
    case 'TableConstructorExpression': {
      const listed = node.fields.filter(({ type }) => type === 'TableValue')
      const named = node.fields.map((field) =>
        field.type === 'TableKeyString' ? `.set('${field.key.name}', ${single(field.value)})` : '',
      )
      return `lua.tableOf(${list(listed.map(({ value }) => value))})${named.join('')}`
    }
    default:
      return unsupported(node?.type)
  }
}

function typeName(value: LuaValue): string {
  if (value === undefined) return 'nil'
  return value instanceof LuaTable ? 'table' : typeof value
}

function toNumber(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || value.trim() === '' || Number.isNaN(Number(value)))
    return undefined
  return Number(value)
}

function numberOf(value: LuaValue): number {
  const number = toNumber(value)
  if (number !== undefined) return number
  throw new LuaError(`attempt to perform arithmetic on ${typeName(value)}`)
}

/** A number is written as by `%.14g`. */
function textOf(value: LuaValue): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'number') throw new LuaError(`attempt to concatenate ${typeName(value)}`)
  const rounded = Number(value.toPrecision(14))
  return Math.abs(rounded) < 1e14 ? String(rounded) : rounded.toExponential()
}

function isLess(left: LuaValue, right: LuaValue): boolean {
  if (typeof left === 'number' && typeof right === 'number') return left < right
  if (typeof left === 'string' && typeof right === 'string') return left < right
  throw new LuaError(`attempt to compare ${typeName(left)} with ${typeName(right)}`)
}

/** What the compiled JavaScript calls. */
const RUNTIME = {
  isTrue: (value: LuaValue) => value !== undefined && value !== false,
  tableOf: LuaTable.of,
  table(value: LuaValue): LuaTable {
    if (value instanceof LuaTable) return value
    throw new LuaError(`attempt to index a ${typeName(value)} value`)
  },
  call(callee: LuaValue, args: readonly LuaValue[]): readonly LuaValue[] {
    if (typeof callee !== 'function')
      throw new LuaError(`attempt to call a ${typeName(callee)} value`)
    const result = callee(...(args as never[])) as LuaValue
    return Array.isArray(result) ? result : [result]
  },
  *range(start: LuaValue, end: LuaValue, step: LuaValue) {
    const [by, last] = [numberOf(step), numberOf(end)]
    for (let at = numberOf(start); by > 0 ? at <= last : at >= last; at += by) yield at
  },
  /** What an iterator gives until it gives `nil`. */
  *each(iterator: LuaValue) {
    for (;;) {
      const values = RUNTIME.call(iterator, [])
      if (values[0] === undefined) return
      yield values
    }
  },
  and: (left: LuaValue, right: () => LuaValue) => (RUNTIME.isTrue(left) ? right() : left),
  or: (left: LuaValue, right: () => LuaValue) => (RUNTIME.isTrue(left) ? left : right()),
  'unary #': (value: LuaValue) =>
    typeof value === 'string' ? value.length : RUNTIME.table(value).list().length,
  'unary -': (value: LuaValue) => -numberOf(value),
  '+': (left: LuaValue, right: LuaValue) => numberOf(left) + numberOf(right),
  '-': (left: LuaValue, right: LuaValue) => numberOf(left) - numberOf(right),
  '*': (left: LuaValue, right: LuaValue) => numberOf(left) * numberOf(right),
  '/': (left: LuaValue, right: LuaValue) => numberOf(left) / numberOf(right),
  '^': (left: LuaValue, right: LuaValue) => numberOf(left) ** numberOf(right),
  '..': (left: LuaValue, right: LuaValue) => textOf(left) + textOf(right),
  '==': (left: LuaValue, right: LuaValue) => left === right,
  '~=': (left: LuaValue, right: LuaValue) => left !== right,
  '<': isLess,
  '>': (left: LuaValue, right: LuaValue) => isLess(right, left),
  '<=': (left: LuaValue, right: LuaValue) => left === right || isLess(left, right),
  '>=': (left: LuaValue, right: LuaValue) => left === right || isLess(right, left),
}

/** A pattern of the scripts as a regular expression. */
const regexpOf = (pattern: string): RegExp =>
  new RegExp(
    pattern.replaceAll('|', '\\|').replaceAll('%a', '[A-Za-z]').replaceAll('%', '\\'),
    'ds',
  )

const libraryOf = (functions: Readonly<Record<string, LuaFunction>>): LuaTable =>
  new LuaTable(Object.entries(functions))

const LIBRARY: Readonly<Record<string, LuaValue>> = {
  tonumber: toNumber,
  tostring(value: LuaValue) {
    if (value === undefined) return 'nil'
    return typeof value === 'boolean' ? String(value) : textOf(value)
  },
  type: typeName,
  error(value: LuaValue) {
    throw new LuaError(value)
  },
  unpack: (table: LuaTable, from = 1, to = Infinity) => table.list().slice(from - 1, to),
  ipairs(table: LuaTable) {
    let at = 0
    return () => [table.has(++at) ? at : undefined, table.get(at)]
  },
  math: libraryOf({
    max: (...values: LuaValue[]) => Math.max(...values.map(numberOf)),
    floor: (value: LuaValue) => Math.floor(numberOf(value)),
  }),
  table: libraryOf({
    concat: (table: LuaTable, by: string) => table.list().map(textOf).join(by),
  }),
  string: libraryOf({
    format: (format: string, value: LuaValue) =>
      format.replace(/^%\.(\d)f$/, (_, digits) => numberOf(value).toFixed(Number(digits))),
    sub: (text: string, from: number, to = text.length) =>
      text.slice(from - 1, Math.max(from - 1, to)),
    find(text: string, what: string) {
      const at = text.indexOf(what)
      return at < 0 ? undefined : at + 1
    },
    match(text: string, pattern: string) {
      const found = regexpOf(pattern).exec(text)
      // An empty capture is a position.
      return found
        ?.slice(1)
        .map((each, index) => each || (found.indices?.[index + 1]?.[0] ?? 0) + 1)
    },
    gsub: (text: string, pattern: string, replacement: string) =>
      text.replace(regexpOf(pattern), replacement.replaceAll('%', '$')),
  }),
}
