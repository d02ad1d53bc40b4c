import { type ChildProcess, fork } from 'node:child_process'

/** Starts a program of the room in a process of its own; TypeScript is compiled as it is loaded. */
export function startProgram(program: string): ChildProcess {
  const isSource = program.endsWith('.ts')
  return fork(program, [], {
    execArgv: isSource ? ['--import', import.meta.resolve('tsx')] : [],
    // Bytes stay bytes.
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}
