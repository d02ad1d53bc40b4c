import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** What the compiler prints; nothing when every program compiles, or does not where it must not. */
function compile(project: string): Promise<string> {
  return new Promise((resolve) => {
    const arguments_ = ['-p', `test/types/${project}`, '--pretty', 'false']
    execFile('node_modules/.bin/tsc', arguments_, { cwd: ROOT }, (error, stdout, stderr) => {
      const output = stdout + stderr
      resolve(error && output === '' ? error.message : output)
    })
  })
}

describe('the programs of users', () => {
  it.each([
    ['Express 5 and ioredis 6', 'tsconfig.express5.json'],
    ['Express 4 and ioredis 5', 'tsconfig.express4.json'],
  ])('compile, or do not where they must not, with the types of %s', async (_types, project) => {
    expect(await compile(project)).toBe('')
  })
})
