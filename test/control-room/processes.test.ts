import { fork } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { compiledPrograms } from './start-room.js'

it('ends every process whose parent was gone before it was loaded', async () => {
  const { programs, tourProgram = '' } = await compiledPrograms()
  const all = [programs?.receiver ?? '', programs?.answer ?? '', tourProgram]
  const ends = all.map(async (program) => {
    const child = fork(program, [], { serialization: 'advanced', silent: true })
    const said = child.stderr ? text(child.stderr) : ''
    child.disconnect()
    const [code] = await once(child, 'exit')
    return { code, said: await said }
  })
  const quietly = { code: 0, said: '' }
  expect(await Promise.all(ends)).toEqual([quietly, quietly, quietly])
})
