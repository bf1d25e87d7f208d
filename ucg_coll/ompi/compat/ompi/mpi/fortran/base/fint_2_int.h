/*
 * Stands in for a header of Open MPI 4.1 that <ompi/op/op.h> includes and distribution packages do
 * not ship. op.h needs one macro of it; a C int fits a Fortran INTEGER wherever Open MPI builds.
 */
#ifndef OMPI_FORTRAN_BASE_FINT_2_INT_H
#define OMPI_FORTRAN_BASE_FINT_2_INT_H

#define OMPI_INT_2_FINT(value) (value)

#endif
