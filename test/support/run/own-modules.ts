import { afterAll, vi } from 'vitest'

// A worker runs one test file after the other, which spares each of them a process and the loading
// of packages. The modules of this project, with all that they keep, are still each file's own.
afterAll(() => void vi.resetModules())
