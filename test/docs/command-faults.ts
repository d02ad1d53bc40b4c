import { readArguments } from '../../src/cli/frame/arguments.js'
import { STEPS } from '../../src/cli/migrate/migrate-options.js'
import { COMMANDS } from '../../src/cli/run-command.js'

/** A program with the words that it was started with. */
export type Call = readonly string[]

/** What no such script is: npm's own commands. */
const OF_NPM = ['ci', 'init', 'install', 'pack', 'pkg', 'version']
/** Where a file of the package is once it is installed. */
const INSTALLED = 'node_modules/express-service-auth/'
/** What a text says in place of the name of a command. */
const ANY_COMMAND = 'COMMAND'

/** What package.json says. */
export interface Manifest {
  readonly scripts: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, unknown>>
}

/** Why a call cannot work, or nothing. */
export function faultOf(call: Call, { scripts, exports }: Manifest): string | undefined {
  const [program, ...words] = call
  const files = words.filter((word) => word.startsWith(INSTALLED))
  const lost = files.find((file) => !Object.values(exports).includes(file.replace(INSTALLED, './')))
  if (lost !== undefined) return `the package exports no ${lost}`
  if (program === 'npm') return faultOfNpm(words, scripts)
  if (program === 'service-auth') return faultOfCommand(words)
  if (program !== 'npx') return undefined
  const [name, ...rest] = words
  if (name === 'jest' || name === 'tsx') return undefined
  return name === 'service-auth' ? faultOfCommand(rest) : `npx knows no ${name}`
}

function faultOfNpm(words: Call, scripts: Manifest['scripts']): string | undefined {
  const end = words.indexOf('--')
  const own = (end === -1 ? words : words.slice(0, end)).filter((word) => !word.startsWith('-'))
  const [command = '', script = ''] = own
  if (OF_NPM.includes(command)) return undefined
  const name = command === 'run' ? script : command
  return Object.hasOwn(scripts, name) ? undefined : `there is no script ${name}`
}

function faultOfCommand([name, ...words]: Call): string | undefined {
  const command = COMMANDS.find((one) => one.name === name)
  const options = command?.options ?? {}
  if (command === undefined && name !== ANY_COMMAND) return `there is no command ${name}`
  try {
    const { values } = readArguments(words, { options, maxValues: command?.maxValues ?? 0 })
    const isStep = STEPS.some((step) => step === values[0])
    const needsStep = name === 'migrate' && words[0] !== '--help' && words.length > 0
    return needsStep && !isStep ? `migrate has no step ${values[0]}` : undefined
  } catch (error) {
    return (error as Error).message
  }
}
