export async function postgresSweep() {}
