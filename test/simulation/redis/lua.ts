import luaparse, { type Chunk, type Expression, type Statement } from 'luaparse'

/*
 * Compiles the Lua of a Redis script to JavaScript. So the simulation runs the scripts of the package, not a copy
 * of them. It knows the part of Lua 5.1 that they use, and throws for the rest. A string is a JavaScript
 * string of bytes (latin1), `nil` is `undefined`, and a function returns the list of its values.
 */

export type LuaValue = string | number | boolean | undefined | LuaTable | LuaFunction
export type LuaFunction = (args: readonly LuaValue[]) => readonly LuaValue[]

export class LuaTable {
  readonly fields = new Map<LuaValue, LuaValue>()

  static of(values: readonly LuaValue[]): LuaTable {
    const table = new LuaTable()
    for (const [index, value] of values.entries()) table.set(index + 1, value)
    return table
  }

  get(key: LuaValue): LuaValue {
    return this.fields.get(key)
  }

  set(key: LuaValue, value: LuaValue): void {
    if (key === undefined) throw new LuaError('table index is nil')
    if (value === undefined) this.fields.delete(key)
    else this.fields.set(key, value)
  }

  length(): number {
    let length = 0
    while (this.fields.has(length + 1)) length += 1
    return length
  }

  values(): LuaValue[] {
    return Array.from({ length: this.length() }, (_, index) => this.get(index + 1))
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

/** A compiled script. `globals` has `KEYS`, `ARGV` and `redis`. */
export type CompiledScript = (globals: ReadonlyMap<string, LuaValue>) => readonly LuaValue[]

export function compileLua(source: string): CompiledScript {
  const chunk: Chunk = luaparse.parse(source, {
    luaVersion: '5.1',
    encodingMode: 'pseudo-latin1',
    scope: true,
  })
  const body = `'use strict'; return (globals) => { ${block(chunk.body)} return [] }`
  const compiled = new Function('lua', body)(RUNTIME) as CompiledScript
  return (globals) =>
    compiled({ get: (name: string) => globals.get(name) ?? LIBRARY.get(name) } as never)
}

const RESERVED =
  /^(var|let|const|new|this|delete|typeof|class|switch|case|default|void|with|lua|globals)$/
const name = (text: string): string => (RESERVED.test(text) ? `$${text}` : text)

function block(statements: readonly Statement[]): string {
  return statements.map(statement).join('\n')
}

function statement(node: Statement): string {
  switch (node.type) {
    case 'LocalStatement': {
      const names = node.variables.map((each) => name(each.name))
      if (node.init.length === 0) return `let ${names.join(', ')};`
      if (names.length === 1 && node.init.length === 1)
        return `let ${names[0]} = ${single(node.init[0])};`
      return `let [${names.join(', ')}] = ${list(node.init)};`
    }
    case 'AssignmentStatement':
      return assignment(node.variables, node.init)
    case 'CallStatement':
      return `${multiple(node.expression)};`
    case 'ReturnStatement':
      return `return ${list(node.arguments)};`
    case 'BreakStatement':
      return 'break;'
    case 'DoStatement':
      return `{ ${block(node.body)} }`
    case 'WhileStatement':
      return `while (lua.truth(${single(node.condition)})) { ${block(node.body)} }`
    case 'IfStatement':
      return node.clauses
        .map((clause) =>
          clause.type === 'ElseClause'
            ? `else { ${block(clause.body)} }`
            : `${clause.type === 'IfClause' ? 'if' : 'else if'} (lua.truth(${single(clause.condition)})) { ${block(clause.body)} }`,
        )
        .join(' ')
    case 'FunctionDeclaration':
      return `const ${name((node.identifier as { name: string }).name)} = ${closure(node)};`
    case 'ForNumericStatement': {
      const variable = name(node.variable.name)
      const step = node.step ? single(node.step) : '1'
      return `for (let ${variable} = lua.number(${single(node.start)}), $end = lua.number(${single(node.end)}), $step = lua.number(${step}); $step > 0 ? ${variable} <= $end : ${variable} >= $end; ${variable} += $step) { ${block(node.body)} }`
    }
    case 'ForGenericStatement': {
      const names = node.variables.map((each) => name(each.name)).join(', ')
      return `for (const [${names}] of lua.iterate(${list(node.iterators)})) { ${block(node.body)} }`
    }
    default:
      throw new TypeError(`a script uses ${node.type}, which the simulation cannot run`)
  }
}

function assignment(targets: readonly Expression[], values: readonly Expression[]): string {
  const assign = (target: Expression, value: string): string => {
    if (target.type === 'Identifier') return `${name(target.name)} = ${value};`
    if (target.type === 'IndexExpression') {
      return `lua.table(${single(target.base)}).set(${single(target.index)}, ${value});`
    }
    if (target.type === 'MemberExpression') {
      return `lua.table(${single(target.base)}).set('${target.identifier.name}', ${value});`
    }
    throw new TypeError(`a script assigns to ${target.type}`)
  }
  const [target] = targets
  if (targets.length === 1 && values.length === 1)
    return assign(target as Expression, single(values[0]))
  return `{ const $ = ${list(values)}; ${targets.map((each, index) => assign(each, `$[${index}]`)).join(' ')} }`
}

interface FunctionNode {
  readonly parameters: readonly { readonly type: string }[]
  readonly body: readonly Statement[]
}

function closure({ parameters, body }: FunctionNode): string {
  const names = parameters.map((each) =>
    each.type === 'VarargLiteral' ? '...$rest' : name((each as unknown as { name: string }).name),
  )
  return `(([${names.join(', ')}]) => { ${block(body)} return [] })`
}

/** The list of the values of several expressions; the last may give many. */
function list(nodes: readonly Expression[]): string {
  const last = nodes.at(-1)
  if (last === undefined) return '[]'
  const isOpen = last.type === 'CallExpression' || last.type === 'VarargLiteral'
  const first = nodes.slice(0, isOpen ? -1 : undefined).map(single)
  return isOpen && first.length === 0
    ? multiple(last)
    : `[${[...first, ...(isOpen ? [`...${multiple(last)}`] : [])].join(', ')}]`
}

function multiple(node: Expression): string {
  if (node.type === 'VarargLiteral') return '$rest'
  if (node.type === 'CallExpression')
    return `lua.call(${single(node.base)}, ${list(node.arguments)})`
  throw new TypeError(`a script calls ${node.type}`)
}

const OPERATORS: Readonly<Record<string, string>> = {
  '+': 'add',
  '-': 'subtract',
  '*': 'multiply',
  '/': 'divide',
  '^': 'power',
  '%': 'modulo',
  '..': 'concat',
  '<': 'less',
  '<=': 'lessOrEqual',
}

function single(node: Expression | undefined): string {
  switch (node?.type) {
    case 'StringLiteral':
    case 'NumericLiteral':
    case 'BooleanLiteral':
      return JSON.stringify(node.value)
    case 'NilLiteral':
      return 'undefined'
    case 'Identifier':
      return isGlobal(node) ? `globals.get('${node.name}')` : name(node.name)
    case 'CallExpression':
    case 'VarargLiteral':
      return `${multiple(node)}[0]`
    case 'FunctionDeclaration':
      return closure(node)
    case 'IndexExpression':
      return `lua.index(${single(node.base)}, ${single(node.index)})`
    case 'MemberExpression':
      return `lua.index(${single(node.base)}, '${node.identifier.name}')`
    case 'LogicalExpression':
      return `lua.${node.operator}(${single(node.left)}, () => ${single(node.right)})`
    case 'UnaryExpression':
      if (node.operator === 'not') return `!lua.truth(${single(node.argument)})`
      return `lua.${node.operator === '#' ? 'length' : 'negate'}(${single(node.argument)})`
    case 'BinaryExpression':
      return binary(node.operator, single(node.left), single(node.right))
    case 'TableConstructorExpression':
      return tableOf(node.fields as never)
    default:
      throw new TypeError(`a script uses ${node?.type}, which the simulation cannot run`)
  }
}

const isGlobal = (node: Expression): boolean => !(node as { isLocal?: boolean }).isLocal

function binary(operator: string, left: string, right: string): string {
  if (operator === '==') return `(${left} === ${right})`
  if (operator === '~=') return `(${left} !== ${right})`
  if (operator === '>') return `lua.less(${right}, ${left})`
  if (operator === '>=') return `lua.lessOrEqual(${right}, ${left})`
  return `lua.${OPERATORS[operator]}(${left}, ${right})`
}

function tableOf(
  fields: readonly { type: string; key: Expression & { name: string }; value: Expression }[],
): string {
  const items = fields.filter(({ type }) => type === 'TableValue').map(({ value }) => value)
  const named = fields
    .filter(({ type }) => type !== 'TableValue')
    .map(
      ({ type, key, value }) =>
        `[${type === 'TableKeyString' ? `'${key.name}'` : single(key)}, ${single(value)}]`,
    )
  return `lua.tableOf(${list(items)}, [${named.join(', ')}])`
}

function numberOf(value: LuaValue): number {
  const number = toNumber(value)
  if (number === undefined)
    throw new LuaError(`attempt to perform arithmetic on ${typeName(value)}`)
  return number
}

function toNumber(value: LuaValue): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const number = Number(value)
  return Number.isNaN(number) ? undefined : number
}

/** As `%.14g`. */
function textOf(value: LuaValue): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'number') throw new LuaError(`attempt to concatenate ${typeName(value)}`)
  if (Number.isInteger(value) && Math.abs(value) < 1e14) return String(value)
  const text = value.toPrecision(14)
  if (!text.includes('e')) return text.includes('.') ? text.replace(/\.?0+$/, '') : text
  return text.replace(/\.?0*e([+-])(\d)$/, 'e$10$2').replace(/\.?0*e/, 'e')
}

const typeName = (value: LuaValue): string => {
  if (value === undefined) return 'nil'
  return value instanceof LuaTable ? 'table' : typeof value
}

function compare(left: LuaValue, right: LuaValue): number {
  if (typeof left !== typeof right || (typeof left !== 'number' && typeof left !== 'string')) {
    throw new LuaError(`attempt to compare ${typeName(left)} with ${typeName(right)}`)
  }
  if (left === right) return 0
  return left < (right as typeof left) ? -1 : 1
}

function table(value: LuaValue): LuaTable {
  if (value instanceof LuaTable) return value
  throw new LuaError(`attempt to index a ${typeName(value)} value`)
}

const truth = (value: LuaValue): boolean => value !== undefined && value !== false

/** What the compiled JavaScript calls. */
const RUNTIME = {
  truth,
  table,
  number: numberOf,
  index: (base: LuaValue, key: LuaValue) => table(base).get(key),
  call(callee: LuaValue, args: readonly LuaValue[]) {
    if (typeof callee !== 'function')
      throw new LuaError(`attempt to call a ${typeName(callee)} value`)
    return callee(args)
  },
  and: (left: LuaValue, right: () => LuaValue) => (truth(left) ? right() : left),
  or: (left: LuaValue, right: () => LuaValue) => (truth(left) ? left : right()),
  length: (value: LuaValue) => (typeof value === 'string' ? value.length : table(value).length()),
  negate: (value: LuaValue) => -numberOf(value),
  add: (left: LuaValue, right: LuaValue) => numberOf(left) + numberOf(right),
  subtract: (left: LuaValue, right: LuaValue) => numberOf(left) - numberOf(right),
  multiply: (left: LuaValue, right: LuaValue) => numberOf(left) * numberOf(right),
  divide: (left: LuaValue, right: LuaValue) => numberOf(left) / numberOf(right),
  modulo: (left: LuaValue, right: LuaValue) => numberOf(left) % numberOf(right),
  power: (left: LuaValue, right: LuaValue) => numberOf(left) ** numberOf(right),
  concat: (left: LuaValue, right: LuaValue) => textOf(left) + textOf(right),
  less: (left: LuaValue, right: LuaValue) => compare(left, right) < 0,
  lessOrEqual: (left: LuaValue, right: LuaValue) => compare(left, right) <= 0,
  tableOf(items: readonly LuaValue[], named: readonly (readonly [LuaValue, LuaValue])[]) {
    const made = LuaTable.of(items)
    for (const [key, value] of named) made.set(key, value)
    return made
  },
  *iterate([iterator, state, start]: readonly LuaValue[]) {
    let control = start
    for (;;) {
      const values = RUNTIME.call(iterator, [state, control])
      if (values[0] === undefined) return
      control = values[0]
      yield values
    }
  },
}

/** A Lua pattern as a regular expression, and which of its captures are positions. */
function patternOf(pattern: string): {
  readonly regexp: RegExp
  readonly positions: readonly boolean[]
} {
  const known = patterns.get(pattern)
  if (known !== undefined) return known
  let source = ''
  const positions: boolean[] = []
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern[at] as string
    if (character === '%') {
      at += 1
      source += classOf(pattern[at] as string)
    } else if (character === '[') {
      const end = pattern.indexOf(']', at + 2)
      source += `[${pattern.slice(at + 1, end).replace(/%(.)/g, (_, letter) => classOf(letter))}]`
      at = end
    } else if (character === '(') {
      positions.push(pattern[at + 1] === ')')
      source += '('
    } else if (character === '-') source += '*?'
    else source += /[|{}\\]/.test(character) ? `\\${character}` : character
  }
  const made = { regexp: new RegExp(source, 'ds'), positions }
  patterns.set(pattern, made)
  return made
}

const patterns = new Map<string, ReturnType<typeof patternOf>>()

const CLASSES: Readonly<Record<string, string>> = {
  d: '\\d',
  a: 'A-Za-z',
  s: '\\s',
  S: '\\S',
  w: 'A-Za-z0-9',
}
function classOf(letter: string): string {
  const known = CLASSES[letter]
  if (known === undefined) return /[a-z]/i.test(letter) ? unsupported(letter) : `\\${letter}`
  return known.startsWith('\\') ? known : `[${known}]`
}

function unsupported(what: string): never {
  throw new TypeError(`a script uses ${what}, which the simulation cannot run`)
}

function captures(found: RegExpExecArray, positions: readonly boolean[]): LuaValue[] {
  if (positions.length === 0) return [found[0]]
  const { indices } = found as unknown as { readonly indices: readonly [number, number][] }
  return positions.map((isPosition, index) =>
    isPosition ? (indices[index + 1] as [number, number])[0] + 1 : found[index + 1],
  )
}

const library = (
  functions: Readonly<Record<string, (...args: never[]) => LuaValue | LuaValue[]>>,
): LuaTable => {
  const made = new LuaTable()
  for (const [key, value] of Object.entries(functions)) made.set(key, plain(value))
  return made
}

const plain = (work: (...args: never[]) => LuaValue | LuaValue[]): LuaFunction => {
  return (args) => {
    const result = work(...(args as never[]))
    return Array.isArray(result) ? result : [result]
  }
}

function formatted(format: string, ...values: LuaValue[]): string {
  let index = 0
  return format.replace(/%(%|s|d|\.(\d+)f)/g, (_, kind: string, digits?: string) => {
    if (kind === '%') return '%'
    const value = values[index++]
    if (kind === 's') return textOf(value)
    return kind === 'd'
      ? String(Math.trunc(numberOf(value)))
      : fixed(numberOf(value), Number(digits))
  })
}

/** `toFixed` switches to exponents above 1e21, which no number of the scripts reaches. */
const fixed = (value: number, digits: number): string => value.toFixed(digits)

const LIBRARY: ReadonlyMap<string, LuaValue> = new Map<string, LuaValue>([
  ['tonumber', plain((value: LuaValue) => toNumber(value))],
  [
    'tostring',
    plain((value: LuaValue) =>
      value === undefined ? 'nil' : textOf(typeof value === 'boolean' ? String(value) : value),
    ),
  ],
  ['type', plain((value: LuaValue) => typeName(value))],
  [
    'error',
    plain((value: LuaValue) => {
      throw new LuaError(value)
    }),
  ],
  [
    'unpack',
    plain((values: LuaTable, from = 1, to = values.length()) =>
      Array.from({ length: to - from + 1 }, (_, index) => values.get(from + index)),
    ),
  ],
  [
    'ipairs',
    plain((values: LuaTable) => {
      const next = plain((_: LuaValue, at: number) => {
        const value = values.get(at + 1)
        return value === undefined ? [undefined] : [at + 1, value]
      })
      return [next, values, 0]
    }),
  ],
  [
    'math',
    library({
      max: (...values: number[]) => Math.max(...values.map(numberOf)),
      floor: (value: number) => Math.floor(numberOf(value)),
    }),
  ],
  [
    'table',
    library({ concat: (values: LuaTable, by: string) => values.values().map(textOf).join(by) }),
  ],
  [
    'string',
    library({
      format: formatted,
      sub: (text: string, from: number, to = text.length) =>
        text.slice(from - 1, Math.max(from - 1, to)),
      match(text: string, pattern: string) {
        const { regexp, positions } = patternOf(pattern)
        const found = regexp.exec(text)
        return found === null ? [undefined] : captures(found, positions)
      },
      find(text: string, what: string, from: number, isPlain: boolean) {
        if (!isPlain) return unsupported('string.find with a pattern')
        const at = text.indexOf(what, from - 1)
        return at < 0 ? [undefined] : [at + 1, at + what.length]
      },
      gsub(text: string, pattern: string, replacement: string, count: number) {
        if (count !== 1) return unsupported('string.gsub without count 1')
        const found = patternOf(pattern).regexp.exec(text)
        if (found === null) return [text, 0]
        const inserted = replacement.replace(/%(\d)/g, (_, index) => found[Number(index)] ?? '')
        return [
          text.slice(0, found.index) + inserted + text.slice(found.index + found[0].length),
          1,
        ]
      },
    }),
  ],
])
