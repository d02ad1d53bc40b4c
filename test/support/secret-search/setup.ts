import { afterAll, afterEach, expect } from 'vitest'
import { createSecretSearch } from './secret-search.js'
import { beginSession } from './session.js'
import { leaveChannels, recordSpiedConsole, watchChannels, watchProcess } from './watch.js'

// For each test file: learns the secrets, records the output, and fails the file if a secret is in its output.
expect.setState({ currentTestName: '' })
const search = createSecretSearch(() => expect.getState().currentTestName || undefined)
watchProcess()
beginSession(search)
watchChannels()

afterEach(recordSpiedConsole)

afterAll(() => {
  leaveChannels()
  const findings = search.settle()
  if (findings.length > 0) throw new Error(`A secret has come out:\n${findings.join('\n')}`)
})
