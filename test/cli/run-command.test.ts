import { describe, expect, it } from 'vitest'
import type { Command, CommandContext, CommandResult } from '../../src/cli/frame/command.js'
import { unreachableError, usageError } from '../../src/cli/frame/command-failure.js'
import { COMMANDS } from '../../src/cli/run-command.js'
import { runHere } from './kit.js'

const WELL: CommandResult = { exitCode: 0, lines: ['all well'], json: { answer: 42 } }

function commandThat(run: (context: CommandContext) => unknown): readonly Command[] {
  return [
    {
      name: 'probe',
      summary: 'Probes',
      usage: ['[--file FILE]', '--all'],
      maxValues: 1,
      options: {
        Options: {
          '--file FILE': 'a file',
          '--header LINE...': 'a header',
          '--prefix [TEXT]': 'a prefix',
          '--all': 'all',
        },
      },
      exitCodes: { 1: 'a fault' },
      run: async (context) => (await run(context)) as CommandResult,
    },
  ]
}

const probe = (argv: readonly string[], run: (context: CommandContext) => unknown = () => WELL) =>
  runHere(argv, { commands: commandThat(run) })

describe('a fault that a command has found', () => {
  it('may be one line on standard error, with --json too', async () => {
    const run = () => ({ exitCode: 1, lines: [], json: { answer: 41 }, errorLine: 'not\ndone' })
    const stderr = 'service-auth: not\\u000adone\n'
    expect(await probe(['probe'], run)).toMatchObject({ exitCode: 1, stdout: '', stderr })
    const asJson = await probe(['probe', '--json'], run)
    expect(asJson).toMatchObject({ exitCode: 1, stderr })
    expect(asJson.json()).toEqual({ command: 'probe', ok: false, answer: 41 })
  })
})

describe('what a command gets', () => {
  it('are its options and values, wherever they stand', async () => {
    let seen: unknown
    const words = ['probe', 'one', '--file=a', '--header', 'x: 1', '--header', 'y: 2', '--prefix=']
    await probe([...words, '--all'], ({ arguments: given }) => {
      const { values } = given
      seen = [values, given.text('file'), given.texts('header'), given.text('prefix')]
      return WELL
    })
    expect(seen).toEqual([['one'], 'a', ['x: 1', 'y: 2'], ''])
  })

  it('is what stands behind -- as a value', async () => {
    let seen: unknown
    await probe(['probe', '--', '--json'], ({ arguments: given }) => {
      seen = [given.values, given.has('json')]
      return WELL
    })
    expect(seen).toEqual([['--json'], false])
  })
})

describe('the end of a command', () => {
  it('is its lines and its exit code', async () => {
    expect(await probe(['probe'])).toMatchObject({ exitCode: 0, stdout: 'all well\n', stderr: '' })
  })

  it('is one JSON object with --json', async () => {
    const ran = await probe(['probe', '--json'], () => ({ ...WELL, exitCode: 1 }))
    expect(ran).toMatchObject({ exitCode: 1, stderr: '' })
    expect(ran.json()).toEqual({ command: 'probe', ok: false, answer: 42 })
  })

  it.each([
    [2, usageError('it is wrong', 'file'), 'file', 'it is wrong'],
    [3, unreachableError('store_unavailable', 'it is away'), 'store_unavailable', 'it is away'],
  ])('is one line on standard error and exit code %d', async (exitCode, failure, code, message) => {
    const fail = (): never => {
      throw failure
    }
    const stderr = `service-auth: ${message}\n`
    expect(await probe(['probe'], fail)).toMatchObject({ exitCode, stdout: '', stderr })
    const ran = await probe(['probe', '--json'], fail)
    expect(ran).toMatchObject({ exitCode, stderr })
    expect(ran.json()).toEqual({ command: 'probe', ok: false, error: { code, message } })
  })

  it('shows what a failure has to show all the same', async () => {
    const fail = (): never => {
      throw unreachableError('store_unavailable', 'it is away', {
        lines: ['seen'],
        json: { seen: 1 },
      })
    }
    expect(await probe(['probe'], fail)).toMatchObject({ exitCode: 3, stdout: 'seen\n' })
    expect((await probe(['probe', '--json'], fail)).json()).toMatchObject({ ok: false, seen: 1 })
  })

  it('is exit code 3 after a defect, of which only kind and place are told', async () => {
    const ran = await probe(['probe', '--json'], () => {
      throw new TypeError('a secret')
    })
    expect(ran.exitCode).toBe(3)
    expect(ran.json()).toMatchObject({ error: { code: 'internal' } })
    expect(ran.stderr).toMatch(/^service-auth: a bug .*\(TypeError at run-command\.test\.ts:\d+\)/)
    expect(ran.stdout + ran.stderr).not.toContain('a secret')
  })

  it('shows what others wrote in one line, and nothing that a terminal obeys', async () => {
    const hostile = 'a\u001b[2J\nb\u202ec\u2028d\u0085e\u200bf\ud800g\u00a0h\u{e0001}i'
    const show = () => ({ exitCode: 1, lines: [hostile, 'next'], json: { hostile } })
    const escaped =
      'a\\u001b[2J\\u000ab\\u202ec\\u2028d\\u0085e\\u200bf\\ud800g\\u00a0h\\udb40\\udc01i'
    expect((await probe(['probe'], show)).stdout).toBe(`${escaped}\nnext\n`)
    const ran = await probe(['probe', '--json'], show)
    expect(ran.stdout).toMatch(/^[\x20-\x7e]+\n$/)
    expect(ran.json()['hostile']).toBe(hostile)
  })

  it('holds notes to people on standard error, but not with --json', async () => {
    const tell = ({ note }: CommandContext): CommandResult => {
      note('please wait')
      return WELL
    }
    expect((await probe(['probe'], tell)).stderr).toBe('please wait\n')
    expect((await probe(['probe', '--json'], tell)).stderr).toBe('')
  })
})

describe('the progress of a command', () => {
  const work = ({ note, progress }: CommandContext): CommandResult => {
    for (const line of ['1 of 1,000', '2 of 1,000']) progress(line)
    note('please wait')
    progress('3 of 1,000')
    return WELL
  }
  const run = (argv: readonly string[], columns?: number) =>
    runHere(['probe', ...argv], { commands: commandThat(work), ...(columns && { columns }) })

  it('is one line of a terminal, and none in the end', async () => {
    const { stdout, stderr } = await run([], 11)
    const [first, second, note, third, end] = stderr.split('\r\u001b[K').slice(1)
    expect([first, second, third, end]).toEqual(['1 of 1,000', '2 of 1,000', '3 of 1,000', ''])
    expect(note).toBe('please wait\n')
    expect(stdout).toBe('all well\n')
  })

  it('is told to be cut where a terminal is too narrow, and by lines where there is none', async () => {
    expect((await run([], 10)).stderr).toMatch(/1 of 1\.\.\./)
    expect((await run([])).stderr).toBe('1 of 1,000\n2 of 1,000\nplease wait\n3 of 1,000\n')
    expect((await run(['--json'], 80)).stderr).toBe('')
  })
})

describe('a wrong command line', () => {
  const SECRET = 'hunter2hunter2hunter2'
  const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJiaWxsaW5nIn0.c2lnbmF0dXJlc2lnbmF0dXJl'
  it.each([
    [
      'no command',
      [],
      'a command is missing: use one of probe, before any option; see service-auth',
    ],
    ['a command that may be a secret', [SECRET], 'unknown command: use one of probe, before any'],
    ['an option before it', ['--file', SECRET, 'probe'], 'unknown option;'],
    ['an unknown option', ['probe', '--al'], 'unknown option; see service-auth probe'],
    ['an option with an unknown value', ['probe', `--key=${SECRET}`], 'unknown option;'],
    ['an option of every object', ['probe', '--constructor'], 'unknown option;'],
    ['an unknown short option', ['probe', '-x'], 'unknown option;'],
    ['an option without its value', ['probe', '--file'], "'--file <value>' argument missing"],
    ['a secret in place of one', ['probe', '--file', `-${SECRET}`], "option '--file' argument is"],
    ['an empty value', ['probe', '--file', ''], '--file needs a value'],
    ['an option twice', ['probe', '--file', 'a', '--file', 'b'], '--file is given more than once'],
    ['a flag with a value', ['probe', `--all=${SECRET}`], "'--all' does not take an argument"],
    ['too many values', ['probe', SECRET, 'b'], 'too many arguments besides the options: put'],
    [
      'a URL of Redis behind --',
      ['probe', '--', `valkeys://:${SECRET}@h`],
      'do not pass a Redis URL',
    ],
    ['a token in a URL', ['probe', `https://h/?a=Bearer%20${TOKEN}`], 'do not pass a token'],
  ])('of %s ends with 2 and one line that repeats no secret', async (_what, argv, message) => {
    const ran = await probe(argv)
    expect(ran).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ran.stderr).toMatch(/^service-auth: .*; see service-auth( probe)? --help\n$/)
    expect(ran.stderr).toContain(message)
    const end = argv.indexOf('--')
    const asJson = await probe(argv.toSpliced(end === -1 ? argv.length : end, 0, '--json'))
    expect(asJson.exitCode).toBe(2)
    expect(asJson.json()).toMatchObject({ ok: false, error: { code: 'usage' } })
    expect(ran.stderr + asJson.stdout + asJson.stderr).not.toMatch(/hunter|eyJ/)
  })
})

describe('help and version', () => {
  const version = /^\d+\.\d+\.\d+\n$/

  it('list every command', async () => {
    const ran = await runHere(['--help'])
    expect(ran).toMatchObject({ exitCode: 0, stderr: '' })
    for (const { name } of COMMANDS) expect(ran.stdout).toContain(`  ${name} `)
  })

  it.each(COMMANDS.map(({ name }) => name))('tell of %s all that it takes', async (name) => {
    const ran = await runHere([name, '--help'])
    const command = COMMANDS.find((known) => known.name === name)
    expect(ran.exitCode).toBe(0)
    for (const option of Object.values(command?.options ?? {}).flatMap(Object.keys)) {
      expect(ran.stdout).toContain(`\n  ${option.replace(/[[\]]/g, '')} `)
    }
    expect(Math.max(...ran.stdout.split('\n').map((line) => line.length))).toBeLessThan(101)
  })

  it('have a form for people and one for programs', async () => {
    expect((await runHere(['--version'])).stdout).toMatch(version)
    expect((await runHere(['-h'])).stdout).toContain('Usage: service-auth')
    expect((await runHere(['--version', '--json'])).json()).toMatchObject({
      command: null,
      ok: true,
    })
    const help = (await probe(['probe', '--help', '--json'])).json()
    expect(help).toMatchObject({ command: 'probe', ok: true })
    expect(help['help']).toContain(
      'Usage: service-auth probe [--file FILE]\n       service-auth probe --all',
    )
  })
})
